// SPDX-License-Identifier: Apache-2.0
// What --inject takes.
#include <rankc/runtime/injection.hpp>

#include "scratch.hpp"

#include <rankc/runtime/engine.hpp>

#include <doctest/doctest.h>

using namespace rankc::runtime;

namespace {
std::string refused(const std::string& text) {
  return refusal_of([&] { parse_injection(text, 4); });
}
}  // namespace

#ifdef RANKC_INJECT
TEST_CASE("a fault on purpose is read from its text") {
  const injection in = parse_injection("rank=3,op=57,step=12,delay=2s", 4);
  CHECK(in.rank == 3);
  CHECK(in.op == 57);
  CHECK(in.step == 12);
  CHECK(in.what == injection::fault::delay);
  CHECK(in.seconds == 2);
  CHECK(parse_injection("rank=0,op=save,exit=0", 4).code == 0);
  CHECK(refused("rank=4,op=1,kill")
            .find("2: --inject rank=4,op=1,kill: 'rank=4' is none of its parts; legal is rank=R,") == 0);
  CHECK(refused("rank=0,op=0,kill").find("'op=0'") != std::string::npos);
  CHECK(refused("rank=0,op=1,burn").find("'burn'") != std::string::npos);
  CHECK(refused("rank=0,op=1").find("a fault are needed") != std::string::npos);
  CHECK(refused("rank=0,op=save,nan").find("happen at a call; give op=N") != std::string::npos);
}
#else
TEST_CASE("a build without faults on purpose says so") {
  CHECK(refused("rank=0,op=1,kill") ==
        "2: --inject rank=0,op=1,kill: this program was built without faults on purpose; build it with "
        "-DRANKC_INJECT=ON");
}
#endif
