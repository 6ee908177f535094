// SPDX-License-Identifier: Apache-2.0
// A failure whose sentence is filled in: names the value, the rule and what is legal.
#pragma once
#include <rankc/runtime/engine.hpp>

#include <fmt/format.h>
#include <utility>

namespace rankc::runtime {

template <class... Values>
failure refusal(int exit_code, fmt::format_string<Values...> text, Values&&... values) {
  return failure::reported(exit_code, fmt::format(text, std::forward<Values>(values)...));
}

}  // namespace rankc::runtime
