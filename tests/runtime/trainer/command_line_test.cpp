// SPDX-License-Identifier: Apache-2.0
// Options of the command line as the program receives them.
#include <rankc/trainer/command_line.hpp>

#include "../../exit_with.hpp"
#include "fake_engine.hpp"

#include <doctest/doctest.h>

using namespace rankc::runtime;
using rankc::test::exit_of, rankc::test::exit_with;

TEST_CASE("--peers decides whether GPUs of one process use each other's memory") {
  const fake_program program(1, 1, 1);
  const auto maps_peers = [&](std::vector<const char*> words) {
    words.insert(words.begin(), {"fake", "train"});
    return parse_command_line(program.about, static_cast<int>(words.size()), words.data())->where.maps_peers;
  };
  CHECK(maps_peers({}));
  CHECK(maps_peers({"--peers", "on"}));
  CHECK_FALSE(maps_peers({"--peers", "off"}));
  CHECK(exit_of([&] { maps_peers({"--peers", "no"}); }) == exit_with{2, {6031, {"no"}}});
}
