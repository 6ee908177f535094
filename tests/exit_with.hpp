// SPDX-License-Identifier: Apache-2.0
// The exit code of a failure together with its message.
#pragma once
#include "said.hpp"

namespace rankc::test {

struct exit_with {
  int code = 0;
  said message;

  bool operator==(const exit_with&) const = default;
};

inline doctest::String toString(const exit_with& e) {
  return doctest::toString(e.code) + ": " + toString(e.message);
}

/// The failure that a call throws; code 0 if it does not throw. The arguments of a failure from another
/// process are only in its text.
template <class Call>
exit_with exit_of(Call call) {
  try {
    call();
  } catch (const runtime::failure& f) {
    return {f.code, f.arguments.empty() ? said_in(f.what()) : said_of(f)};
  }
  return {};
}

}  // namespace rankc::test
