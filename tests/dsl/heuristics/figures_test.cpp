// SPDX-License-Identifier: Apache-2.0
// The heuristic schedules against Sea AI Lab's: no line with a longer makespan or a higher peak.
#include <doctest/doctest.h>

#include <rankc/schedule/check.hpp>
#include <rankc/schedules/group_interleaved.hpp>
#include <rankc/schedules/one_f_one_b_v.hpp>
#include <rankc/schedules/v_half.hpp>
#include <rankc/schedules/v_min.hpp>
#include <rankc/schedules/zero_bubble_1p.hpp>
#include <rankc/schedules/zero_bubble_2p.hpp>
#include <rankc/schedules/zero_bubble_v_greedy.hpp>

#include <map>
#include <string>

#include "figures.hpp"

using namespace rankc;

namespace {

action_table ours(const figures& f) {
  const int m = f.microbatches;
  if (f.name == "zero_bubble_1p") return collect(schedules::zero_bubble_1p{m}, f.pp);
  if (f.name == "zero_bubble_2p") return collect(schedules::zero_bubble_2p{m}, f.pp);
  if (f.name == "zero_bubble_v_greedy") return collect(schedules::zero_bubble_v_greedy{m}, f.pp);
  if (f.name == "v_half") return collect(schedules::v_half{m}, f.pp);
  if (f.name == "v_min") return collect(schedules::v_min{m}, f.pp);
  if (f.name == "one_f_one_b_v") return collect(schedules::one_f_one_b_v{m}, f.pp);
  if (f.name == "group_interleaved") return collect(schedules::group_interleaved{m}, f.pp);
  if (f.name == "group_interleaved_half") return collect(schedules::group_interleaved{m, 2, (f.pp + 1) / 2}, f.pp);
  return {};
}

}  // namespace

TEST_CASE("makespan and peak are no worse than Sea AI Lab's on any line") {
  std::map<std::string, int> lines, better;
  for (const figures& f : read_figures()) {
    const action_table t = ours(f);
    if (t.actions.empty()) continue;
    CAPTURE(f.name);
    CAPTURE(f.pp);
    CAPTURE(f.microbatches);
    report out;
    check_actions(out, t);
    REQUIRE(out.empty());
    const totals got = total(t, f.cost);
    CHECK(got.makespan <= f.makespan * (1 + 1e-9));
    CHECK(got.peak() <= f.peak);
    ++lines[f.name];
    better[f.name] += got.makespan < f.makespan * (1 - 1e-9) || got.peak() < f.peak;
  }
  for (const auto& [name, n] : lines) MESSAGE(name << ": " << n << " lines, better on " << better[name]);
}
