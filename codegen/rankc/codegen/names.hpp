// SPDX-License-Identifier: Apache-2.0
// Identifiers of generated text, from the users' names of layers, parameters and dims. Each is legal C++,
// unique in its scope, and not a name of the runtime.
#pragma once
#include <rankc/schedule/actions.hpp>

#include <functional>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace rankc::codegen {

/// The name of an action in text, traces and errors: "1F0".
std::string token(const action&);

/// The identifier for a name: letters, digits and '_'. "up-dim" -> "up_dim", "int" -> "int_".
std::string identifier(std::string_view);

/// The identifiers of one scope.
class name_scope {
 public:
  /// `reserved`: names that generated text itself uses in the scope.
  name_scope(const std::vector<std::string_view>& reserved = {});

  /// An identifier for `wanted`, with a number at its end if it is taken. `forms` of it ("d_*") are taken
  /// too.
  std::string take(std::string_view wanted, std::initializer_list<std::string_view> forms = {});

 private:
  std::set<std::string, std::less<>> taken_;
};

}  // namespace rankc::codegen
