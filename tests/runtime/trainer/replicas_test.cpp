// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/replicas.hpp>

#include "../../exit_with.hpp"
#include "fake_engine.hpp"
#include "fake_run.hpp"
#include "scratch.hpp"

#include <doctest/doctest.h>

using namespace rankc::runtime;
using rankc::test::exit_of, rankc::test::exit_with, rankc::test::said_in;

namespace {

double& element(fake_engine& e, const fake_program& p, std::size_t rank, region where,
                const std::string& name) {
  for (const parameter& each : p.layouts[static_cast<std::size_t>(p.ranks[rank].pp)].parameters)
    if (each.name == name) return e.of(rank, where)[each.element + 1];
  throw std::logic_error("no such parameter");
}

}  // namespace

TEST_CASE("what ranks hold alike is compared, and what one alone holds is not") {
  const fake_program program(2, 2, 2);  // rank = (pp * 2 + dp) * 2 + tp
  fake_engine e(program);
  const replicas alike(program.about);
  alike.check(e, {}, 7);
  const auto told = [&] { return exit_of([&] { alike.check(e, {}, 7); }); };
  SUBCASE("replicated over dp and tp: whoever is alone is said to differ") {
    element(e, program, 1, region::weights, "layers.0.norm1") = 5;
    CHECK(told() ==
          exit_with{70, {6590, {"7", "weights", "layers.0.norm1", "0..3", "ranks 0, 2 and 3 and rank 1"}}});
  }
  SUBCASE("split over tp: over dp alone; moments too") {
    element(e, program, 7, region::second_moment, "layers.1.wo") = 5;
    CHECK(told() ==
          exit_with{70, {6590, {"7", "second moment", "layers.1.wo", "5 and 7", "rank 5 and rank 7"}}});
  }
  SUBCASE("a tied weight on both of its stages") {
    element(e, program, 4, region::weights, "wte") = 5;
    CHECK(told() ==
          exit_with{70, {6590, {"7", "weights", "wte", "0, 2, 4 and 6", "ranks 0, 2 and 6 and rank 4"}}});
  }
  SUBCASE("padding and gradients") {
    e.of(2, region::weights).back() = 5;
    element(e, program, 2, region::gradients, "layers.0.norm1") = 5;
    CHECK(told() == exit_with{});
  }
}

TEST_CASE("processes tell each other hashes, and what differs is the same text on all") {
  const fake_program program(1, 2, 1);
  fake_engine e(program), theirs(program);
  const replicas alike(program.about);
  std::vector<std::vector<std::string>> said(2);  // by process
  const auto listen = [&](int rank) {
    return placement{.rank = rank, .exchange = [&said, rank](const std::string&, const std::string& mine) {
                       said[static_cast<std::size_t>(rank)].push_back(mine);
                       return std::vector<std::string>{mine, mine};
                     }};
  };
  element(theirs, program, 1, region::first_moment, "layers.1.b1") = 5;
  alike.check(e, listen(0), 3);
  alike.check(theirs, listen(1), 3);
  REQUIRE(said[0].size() == 1);  // if all replicas agree, there is one exchange of a few bytes
  CHECK(said[0][0].size() == 16);
  CHECK(said[0][0] != said[1][0]);
  const placement beside{.rank = 0, .exchange = [](const std::string&, const std::string& mine) {
                           return std::vector<std::string>{mine, std::string(mine.size(), 'x')};
                         }};
  CHECK(exit_of([&] { alike.check(e, beside, 3); }) ==
        exit_with{70, {6590, {"3", "weights", "wte", "0 and 1", "rank 0 and rank 1"}}});
}

TEST_CASE("--check-replicas stops a run before it saves, and refuses where there is nothing to compare") {
  const scratch files;
  const fake_program two(1, 2, 1), one(1, 1, 1);
  const auto spoil = [&](fake_engine& e) { e.spoilt_at = 4; };
  const outcome found =
      run(two, {"train", "--steps", "6", "--check-replicas", "2", "--save", files.path("run")}, spoil);
  CHECK(found.code == 70);
  CHECK(found.err.starts_with("fake: RC6590: "));
  const std::vector<std::string> differing = said_in(found.err).arguments;
  CHECK(std::vector(differing.begin(), differing.begin() + 4) ==
        std::vector<std::string>{"4", "weights", "wte", "0 and 1"});
  CHECK_FALSE(std::filesystem::exists(files.path("run") + "/step_000004"));
  CHECK(run(two, {"train", "--steps", "6", "--check-replicas", "3"}).code == 0);
  const outcome refused = run(one, {"train", "--check-replicas", "3"});
  CHECK(refused.err.starts_with("fake: RC"));
  CHECK(exit_with{refused.code, said_in(refused.err)} == exit_with{2, {6165, {"3"}}});
}
