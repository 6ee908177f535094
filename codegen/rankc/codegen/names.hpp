// SPDX-License-Identifier: Apache-2.0
// Identifiers of generated text, made from the names that users give layers, parameters and dims: legal, no
// name of the runtime's, and each given once.
#pragma once
#include <rankc/schedule/actions.hpp>

#include <functional>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace rankc::codegen {

/// "1F0": what text, traces and errors call an action.
std::string token(const action&);

/// Name of a value, made of letters, digits and '_': "up-dim" -> "up_dim", "int" -> "int_".
std::string identifier(std::string_view);

/// The identifiers of one scope.
class name_scope {
 public:
  /// With what generated text calls its own there.
  name_scope(const std::vector<std::string_view>& reserved = {});

  /// The identifier for `wanted`, with a number at its end where it is taken. Those of further forms ("d_*")
  /// are taken with it.
  std::string take(std::string_view wanted, std::initializer_list<std::string_view> forms = {});

 private:
  std::set<std::string, std::less<>> taken_;
};

}  // namespace rankc::codegen
