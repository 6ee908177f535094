// SPDX-License-Identifier: Apache-2.0
// Style rules that clang-format does not have.
#pragma once
#include <string_view>
#include <vector>

#include "brackets.hpp"
#include "lexer.hpp"

namespace rankc::style {

struct finding {
  int line;
  std::string_view rule;
};

/// Statements joined by a comma operator: `a = 1, b = 2;`. The header of a `for` may have them.
std::vector<finding> comma_statements(const code& source);

/// A conditional operator in the condition or a branch of another one, also between brackets. The body of a
/// lambda is checked separately.
std::vector<finding> nested_conditionals(const code& source);

/// Lines over 110 columns, counted in code points. Lines of raw strings and of #include may be longer.
std::vector<finding> long_lines(const lexed& source);

/// `using namespace` outside a function: every file that includes the header gets all names.
std::vector<finding> namespace_imports(const code& source);

/// A statement that only calls CUDA, cuBLAS, cuDNN or NCCL, so its status is dropped; and a kernel launch
/// without cudaGetLastError in the next statement.
std::vector<finding> dropped_statuses(const code& source);

/// True if users include the file: a header below a folder `rankc/` of `dsl`, `codegen` or `runtime`.
bool is_public_header(std::string_view path);

/// All rules that apply to the file, by line. `path` is relative to the repository.
std::vector<finding> check(std::string_view path, std::string_view text);

}  // namespace rankc::style
