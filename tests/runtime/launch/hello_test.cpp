// SPDX-License-Identifier: Apache-2.0
// The verdict over the facts that ranks send about themselves.
#include <rankc/launch/hello.hpp>

#include "../../said.hpp"
#include "../trainer/fake_engine.hpp"

#include <doctest/doctest.h>

namespace hello_test {

using namespace rankc::runtime;
using rankc::test::said;
using rankc::test::said_in;

namespace {

hello of(int rank, int world = 3) {
  return {.rank = rank,
          .world = world,
          .host = "node" + std::to_string(rank),
          .pid = 100 + rank,
          .plan = "p 01",
          .build = "b",
          .facts = {{"binary", "a"}, {"NCCL", "2"}}};
}

using sentences = std::vector<said>;

/// All sentences about a start, in their order.
sentences verdict(const std::vector<hello>& all, const std::map<int, std::string>& listings = {}) {
  std::string left = differences(all, 3, listings).text;
  sentences found;
  while (!left.empty()) {
    const std::size_t next = left.find("; RC");
    found.push_back(said_in(left.substr(0, next)));
    left = next == left.npos ? "" : left.substr(next + 2);
  }
  return found;
}

}  // namespace

TEST_CASE("what a rank says arrives as it was") {
  const hello h = of(2), back = unpack_hello(pack(h));
  CHECK(back.who() == "rank 2 (node2, process 102)");
  CHECK(back.world == 3);
  CHECK(back.plan == h.plan);
  CHECK(back.build == h.build);
  CHECK(back.facts == h.facts);
}

TEST_CASE("ranks that agree start; all differences of those that do not are told at once") {
  CHECK(verdict({of(0), of(1), of(2)}).empty());
  CHECK(verdict({of(0), of(2)}) == sentences{{5317, {"1", "1 of node0, 1 of node2"}}});
  const std::string zero = "rank 0 (node0, process 100)", one = "rank 1 (node1, process 101)",
                    two = "rank 2 (node2, process 102)";
  CHECK(verdict({of(0), of(1), of(1)}) ==
        sentences{{5316, {one, one}}, {5317, {"2", "1 of node0, 2 of node1"}}});
  hello other = of(2), wide = of(1, 4);
  other.plan = "q 02";
  other.facts = {{"binary", "b"}};
  CHECK(verdict({of(0), wide, other}, {{0, "same\nten layers\n"}, {2, "same\ntwelve layers\n"}}) ==
        sentences{{5319, {one, "4", zero, "3"}},
                  {5323, {two, "q 02", zero, "p 01", "2", "twelve layers", "0", "ten layers"}},
                  {5320, {"binary", two, "b", zero, "a"}},
                  {5320, {"NCCL", two, "not there", zero, "2"}}});
  other.facts = of(0).facts;
  CHECK(verdict({of(0), of(1), other}, {{0, "same\n"}, {2, "same\n"}}) ==
        sentences{{5322, {two, "q 02", zero, "p 01"}}});
  CHECK(verdict({of(0), of(1), other}) == sentences{{5321, {two, "q 02", zero, "p 01"}}});
}

TEST_CASE("ranks that are missing give the code of ranks that did not meet, and a disagreement another") {
  CHECK(differences({of(0), of(1), of(2)}, 3, {}).code == 0);
  CHECK(differences({of(0), of(2)}, 3, {}).code == 75);
  CHECK(differences({of(0), of(0)}, 3, {}).code == 2);
  hello other = of(2);
  other.plan = "q 02";
  CHECK(differences({of(0), other}, 3, {}).code == 2);
  CHECK(differences({of(0), of(1), other}, 3, {}).code == 2);
}

TEST_CASE("another build of the same program may join, and a note names its ranks") {
  hello other = of(2);
  other.build = "c";
  CHECK(verdict({of(0), of(1), other}).empty());
  CHECK(said_in(builds_note({of(0), of(1), other})) == said{5364, {"rank 2 (node2, process 102)"}});
  CHECK(builds_note({of(0), of(1), of(2)}) == "");
}

TEST_CASE("programs agree by plan, interface and proven calls; unproven ones by their file") {
  fake_program p(2, 2, 1);
  const hello unproven = hello_of(p.about, 0, 2);
  const proven_step step{.pp = 0, .trains = true, .rank = 0, .calls = 1, .hash = 5, .every = 1, .after = ""};
  p.about.proven = std::span(&step, 1);
  const hello proven = hello_of(p.about, 0, 2);
  REQUIRE(unproven.facts.size() == 3);
  CHECK(unproven.facts[2] == std::pair<std::string, std::string>("the program's file (hash)", proven.build));
  REQUIRE(proven.facts.size() == 3);
  CHECK(proven.facts[2].first == "the proven program");
  const proven_step next{.pp = 0, .trains = true, .rank = 0, .calls = 1, .hash = 6, .every = 1, .after = ""};
  p.about.proven = std::span(&next, 1);
  CHECK(hello_of(p.about, 0, 2).facts[2] != proven.facts[2]);
}

TEST_CASE("many ranks are named by ranges") {
  CHECK(ranks_text({4}) == "4");
  CHECK(ranks_text({4, 5}) == "4 and 5");
  CHECK(ranks_text({0, 3, 4, 5, 6, 7, 12}) == "0, 3..7 and 12");
  CHECK(ranks_text({0, 2, 4, 6, 8, 10, 12, 14, 16, 18}) == "0, 2, 4, 6, 8, 10, 12, 14 and 2 more");
}

TEST_CASE("the listing of a plan shows what programs must agree on") {
  const fake_program a(2, 2, 1), b(2, 1, 2);
  CHECK(listing_of(a.about) == listing_of(fake_program(2, 2, 1).about));
  CHECK(listing_of(a.about) != listing_of(b.about));
  CHECK(listing_of(a.about).find("pipeline rank 0: parameter wte (256, 8) from element 0\n") !=
        std::string::npos);
}

}  // namespace hello_test
