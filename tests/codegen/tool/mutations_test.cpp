// SPDX-License-Identifier: Apache-2.0
// Programs of every schedule, sound and damaged, with the verdict of an independent simulator.
// tests/bench/fuzz_check.py drew the lines.
#include <doctest/doctest.h>

#include <fstream>

#include "answers.hpp"

namespace rankc::tool {

TEST_CASE("sound and damaged programs get the verdict of an independent simulator") {
  std::ifstream in(RANKC_ORACLES "/mutations.txt");
  int sound = 0, damaged = 0;
  for (std::string line; std::getline(in, line);) {
    CAPTURE(line);
    const bool expected = json::parse(line).at("sound");
    CHECK(check(line).at("ok") == expected);
    ++(expected ? sound : damaged);
  }
  CHECK(sound >= 50);
  CHECK(damaged >= 200);
}

}  // namespace rankc::tool
