// SPDX-License-Identifier: Apache-2.0
#include "rules.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace rankc::style {
namespace {

// True for `cuda` and a capital letter, as in cudaFree; also for cuMemAlloc, cublasLtCreate, ncclSend and
// cudnnCreate.
bool returns_status(std::string_view name) {
  constexpr std::array<std::string_view, 6> libraries{"cublasLt", "cublas", "cudnn", "cuda", "nccl", "cu"};
  if (name == "cudnnGetLastErrorString") return false;  // it returns nothing
  if (name == "cudaGetLastError") return false;         // as a statement it clears the error
  return std::any_of(libraries.begin(), libraries.end(), [&](std::string_view library) {
    return name.starts_with(library) && name.size() > library.size() &&
           std::isupper(static_cast<unsigned char>(name[library.size()])) != 0;
  });
}

// True if a : ends `case ...:` or `default:`.
bool ends_label(const code& source, std::size_t colon) {
  std::size_t i = colon - 1;
  while (source.is(i, "::") || source.is(i - 1, "::")) --i;
  return source.is(i, "default") || source.is(i - 1, "case");
}

bool begins_statement(const code& source, std::size_t i) {
  const std::size_t before = i - (source.is(i - 1, "::") ? 2 : 1);
  return i == 0 || source.is_one_of(before, {";", "{", "}", ")", "else", "do"}) ||
         (source.is(before, ":") && ends_label(source, before));
}

bool is_call_statement(const code& source, std::size_t name) {
  if (!source.is(name + 1, "(") || !source.is(source.after(name + 1), ";")) return false;
  return begins_statement(source, name);
}

// True if the statement after the launch, which ends at `end`, checks its error.
bool is_checked(const code& source, std::size_t end) {
  for (std::size_t i = end + 1; i < source.size() && !source.is_one_of(i, {";", "}"}); ++i)
    if (source.is_one_of(i, {"cudaGetLastError", "cudaPeekAtLastError"})) return true;
  return false;
}

}  // namespace

std::vector<finding> dropped_statuses(const code& source) {
  std::vector<finding> found;
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source.is_word(i) && returns_status(source[i].text) && is_call_statement(source, i))
      found.push_back({source[i].line, "a status that is dropped"});
    if (source.is(i, "<<<") && source.opens(i) && !is_checked(source, source.after(source.after(i))))
      found.push_back({source[i].line, "a kernel launch whose error is not checked"});
  }
  return found;
}

}  // namespace rankc::style
