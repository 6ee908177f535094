// SPDX-License-Identifier: Apache-2.0
// The accepted and refused values of --inject.
#include <rankc/runtime/injection.hpp>

#include "../../exit_with.hpp"

#include <doctest/doctest.h>

using namespace rankc::runtime;
using rankc::test::exit_of, rankc::test::exit_with, rankc::test::said;

namespace {
exit_with refused(const std::string& text) {
  return exit_of([&] { parse_injection(text, 4); });
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
  for (const auto& [text, part] : {std::pair{"rank=4,op=1,kill", "rank=4"},
                                   {"rank=0,op=0,kill", "op=0"},
                                   {"rank=0,op=1,burn", "burn"}}) {
    const exit_with found = refused(text);
    CHECK(found.code == 2);
    REQUIRE(found.message.arguments.size() == 3);
    CHECK(found.message == said{6075, {text, part, found.message.arguments[2]}});
    CHECK(found.message.arguments[2].starts_with("rank=R,op=N|after|save[,step=S],kill|"));
  }
  const exit_with without_fault = refused("rank=0,op=1");
  CHECK(without_fault.message.id == 6077);
  CHECK(without_fault.message.arguments.at(0) == "rank=0,op=1");
  CHECK(refused("rank=0,op=save,nan") == exit_with{2, {6078, {"rank=0,op=save,nan"}}});
}
#else
TEST_CASE("a build without faults on purpose says so") {
  CHECK(refused("rank=0,op=1,kill") == exit_with{2, {6076, {"rank=0,op=1,kill"}}});
}
#endif
