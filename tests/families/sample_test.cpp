// SPDX-License-Identifier: Apache-2.0
// The sample of each family's programs has every trait of the family, and is about a third of the programs.
#include "sample.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "../balance/plans.hpp"
#include "../columns/plans.hpp"
#include "../documents/plans.hpp"
#include "../experts/plans.hpp"
#include "../independent/plans.hpp"
#include "../odd/plans.hpp"
#include "../routing/plans.hpp"
#include "../sequences/plans.hpp"

namespace sample_test {

namespace {

using names = std::set<std::string>;

std::vector<family_program> programs_of(const std::vector<split_plan>& plans) {
  std::vector<family_program> all;
  for (const split_plan& p : plans) all.push_back({p.job, p.layout, "f64", p.plan});
  return all;
}

names traits_of_all(const std::vector<family_program>& programs) {
  names all;
  for (const family_program& p : programs) all.merge(traits_of(p));
  return all;
}

std::vector<std::vector<family_program>> families() {
  std::vector<std::vector<family_program>> all;
  for (const auto& plans : {balance::plans(), columns::plans(), documents::plans(), experts::plans(),
                            independent::plans(), odd::plans(), routing::plans(), sequences::plans()})
    all.push_back(programs_of(plans));
  return all;
}

}  // namespace

TEST_CASE("a sample has every trait of its family, and the first program of each job in it") {
  std::size_t programs = 0, taken = 0;
  for (const std::vector<family_program>& all : families()) {
    CAPTURE(all.front().plan.name);
    const std::vector<family_program> some = sample(all);
    CHECK(traits_of_all(some) == traits_of_all(all));
    names jobs;
    for (const family_program& p : some) {
      if (!jobs.insert(p.job).second) continue;
      const auto first = std::find_if(all.begin(), all.end(),
                                      [&](const family_program& other) { return other.job == p.job; });
      CHECK(first->layout == p.layout);
    }
    programs += all.size();
    taken += some.size();
  }
  CHECK(2 * taken < programs);
  MESSAGE(taken << " of " << programs << " programs");
}

TEST_CASE("traits are axes, pairs of axes, schedules, recipes, ops and types") {
  names all;
  for (const std::vector<family_program>& family : families()) all.merge(traits_of_all(sample(family)));
  for (const char* trait :
       {"dp_replicate and tp", "dp_shard and ep", "cp and sequence_parallel", "etp and etp",
        "ulysses and ulysses", "schedule one_f_one_b and tp", "dp_shard and schedule zero_bubble_v",
        "schedule dual_pipe_v and schedule dual_pipe_v", "full", "norms", "documents", "rms_norm",
        "type f64"})
    CHECK_MESSAGE(all.count(trait) == 1, trait);
}

TEST_CASE(
    "a program without a new trait is left out, and a program with one is taken with the first of its job") {
  const std::vector<family_program> all = programs_of(odd::plans());
  const auto program = [&](const std::string& job, const std::string& layout) {
    return *std::find_if(all.begin(), all.end(),
                         [&](const family_program& p) { return p.job == job && p.layout == layout; });
  };
  const family_program one = program("gpt", "one"), pipeline = program("gpt", "dual_pipe_v");
  CHECK(sample({one, pipeline, pipeline}).size() == 2);
  CHECK(sample({one, one}).size() == 2);
  const family_program other = program("gpt", "after_layer");
  CHECK(sample({pipeline, other, pipeline}).size() == 2);
  family_program forwards = one;
  forwards.layout = "forwards";
  CHECK(sample({one, forwards}).size() == 1);
  forwards.plan.actions.inference = true;
  CHECK(sample({one, forwards}).size() == 2);
}

}  // namespace sample_test
