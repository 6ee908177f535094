// SPDX-License-Identifier: Apache-2.0
// The reason why no facts follow from a user's op_row.
#pragma once
#include <fmt/format.h>

#include <stdexcept>
#include <utility>

namespace rankc::codegen {

struct undeclared : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <class... Parts>
[[noreturn]] void give_up(fmt::format_string<Parts...> text, Parts&&... parts) {
  throw undeclared(fmt::format(text, std::forward<Parts>(parts)...));
}

}  // namespace rankc::codegen
