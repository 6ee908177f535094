// SPDX-License-Identifier: Apache-2.0
// The verdict over what ranks say of themselves.
#include <rankc/launch/hello.hpp>

#include "../trainer/fake_engine.hpp"

#include <doctest/doctest.h>

namespace hello_test {

using namespace rankc::runtime;

namespace {

hello of(int rank, int world = 3) {
  return {.rank = rank,
          .world = world,
          .host = "node" + std::to_string(rank),
          .pid = 100 + rank,
          .plan = "p 01",
          .facts = {{"binary", "a"}, {"NCCL", "2"}}};
}

std::string verdict(const std::vector<hello>& all, const std::map<int, std::string>& listings = {}) {
  return differences(all, 3, listings);
}

}  // namespace

TEST_CASE("what a rank says arrives as it was") {
  const hello h = of(2), back = unpack_hello(pack(h));
  CHECK(back.who() == "rank 2 (node2, process 102)");
  CHECK(back.world == 3);
  CHECK(back.plan == h.plan);
  CHECK(back.facts == h.facts);
}

TEST_CASE("ranks that agree start; all differences of those that do not are told at once") {
  CHECK(verdict({of(0), of(1), of(2)}) == "");
  CHECK(verdict({of(0), of(2)}) == "rank 1 has not come; arrived: 1 of node0, 1 of node2");
  CHECK(verdict({of(0), of(1), of(1)}) ==
        "rank 1 (node1, process 101) and rank 1 (node1, process 101) are the same rank; each must be there "
        "once; rank "
        "2 has not come; arrived: 1 "
        "of node0, 2 of node1");
  hello other = of(2), wide = of(1, 4);
  other.plan = "q 02";
  other.facts = {{"binary", "b"}};
  CHECK(verdict({of(0), wide, other}, {{0, "same\nten layers\n"}, {2, "same\ntwelve layers\n"}}) ==
        "rank 1 (node1, process 101) of 4 ranks, rank 0 (node0, process 100) of 3; "
        "the plan of rank 2 (node2, process 102) is q 02, that of rank 0 (node0, process 100) is p 01; the "
        "first "
        "difference: rank 0 has "
        "\"ten layers\", rank 2 has \"twelve layers\"; "
        "binary of rank 2 (node2, process 102) is b, that of rank 0 (node0, process 100) is a; "
        "NCCL of rank 2 (node2, process 102) is not there, that of rank 0 (node0, process 100) is 2");
  other.facts = of(0).facts;
  CHECK(verdict({of(0), of(1), other}, {{0, "same\n"}, {2, "same\n"}}) ==
        "the plan of rank 2 (node2, process 102) is q 02, that of rank 0 (node0, process 100) is p 01; their "
        "descriptions are the same, so that only "
        "their ops differ");
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
