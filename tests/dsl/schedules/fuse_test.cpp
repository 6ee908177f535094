// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <rankc/schedule/check.hpp>
#include <rankc/schedule/csv.hpp>
#include <rankc/schedule/fuse.hpp>
#include <rankc/schedules/zero_bubble_v.hpp>

using namespace rankc;

namespace {

constexpr bool fuses(std::string_view from, std::string_view to) {
  report out;
  const action_table fused = fuse_backward(parse_csv(out, from)), expected = parse_csv(out, to);
  return out.empty() && fused.actions == expected.actions && fused.begin == expected.begin;
}
static_assert(fuses("0F0, 0I0, 0W0", "0F0, 0B0"));
static_assert(fuses("0F0, 0F1, 0I0, 0I1, 0W0, 0W1", "0F0, 0F1, 0I0, 0I1, 0W0, 0W1"), "another's W");
static_assert(fuses("0F0, 1F0, 1I0, 0W0", "0F0, 1F0, 1I0, 0W0"), "another stage's W");
static_assert(fuses("0F0, 0I0 \n 1F0, 1I0, 1W0, 1F1, 1B1", "0F0, 0I0 \n 1F0, 1B0, 1F1, 1B1"), "ranks keep their own");
static_assert(fuses("0F0, OVERLAP(0F1,0I0), 0W0, 0I1, 0W1", "0F0, OVERLAP(0F1,0B0), 0B1"));

}  // namespace

TEST_CASE("a fused schedule runs as well, and keeps what is split for a reason") {
  for (int pp = 1; pp <= 6; ++pp)
    for (int m = 1; m <= 16; ++m) {
      const action_table split = collect(schedules::zero_bubble_v{m}, pp), fused = fuse_backward(split);
      report out;
      check_actions(out, fused);
      CHECK(out.empty());
      CHECK(fused.actions.size() < split.actions.size());
      CHECK(fuse_backward(fused).actions == fused.actions);
    }
}
