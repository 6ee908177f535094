// SPDX-License-Identifier: Apache-2.0
// The message of a rank's failure, after its place.
#pragma once
#include "../../../said.hpp"

#include <doctest/doctest.h>

#include <string>

namespace rankc::runtime::cuda::test {

/// The sentence of a call that must fail with code 70. `place`: the text's beginning, such as "rank 0, step
/// 1".
template <class Call>
rankc::test::said said_by_rank(Call call, const std::string& place = "rank ") {
  try {
    call();
  } catch (const failure& f) {
    CHECK(f.code == 70);
    CHECK(std::string(f.what()).starts_with(place));
    return rankc::test::said_in(f.what());
  }
  return {};
}

}  // namespace rankc::runtime::cuda::test
