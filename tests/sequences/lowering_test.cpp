// SPDX-License-Identifier: Apache-2.0
// Lowered programs whose ranks shard sequences: their certificates, the live values of a rank in a ring, and
// the overlap of computation and communication.
#include <doctest/doctest.h>

#include <rankc/codegen/certificate.hpp>
#include <rankc/codegen/lowered.hpp>
#include <rankc/codegen/verify.hpp>
#include <rankc/rankc.hpp>

#include <algorithm>

#include "../some_of.hpp"
#include "plans.hpp"

namespace lowering_test {

using namespace rankc::codegen;

namespace {

const body& block_of(const lowered& l) {
  return *std::find_if(l.bodies.begin(), l.bodies.end(), [](const body& b) { return b.name == "block"; });
}
bool is_shift_op(const op& o) { return o.kind == op_kind::collective && is_shift(o.does); }

}  // namespace

TEST_CASE("certificates are accepted, for either target; of a shift that hands on one tensor they are not") {
  int programs = 0, shifts = 0;
  const std::vector<split_plan> all = sequences::plans(), some = rankc::test::some_of(all);
  REQUIRE(all.size() == RANKC_PLANS);
  for (const split_plan& p : some) {
    CAPTURE(p.job);
    CAPTURE(p.layout);
    for (const target t : {target::host, target::cuda}) {
      const lowered l = lower(p.plan, t == target::host ? dtype::f64 : dtype::bf16, t);
      for (program q : {expand_train(l), expand_evaluate(l)}) {
        CHECK(verify(certificate(q, prove(q))) == "");
        ++programs;
        const auto at = std::find_if(q.ranks[0].ops.begin(), q.ranks[0].ops.end(), is_shift_op);
        if (at == q.ranks[0].ops.end()) continue;
        const verdict order = prove(q);
        at->reads.pop_back();
        CHECK(verify(certificate(q, order)) != "");
        ++shifts;
      }
    }
  }
  CHECK(programs == 4 * static_cast<int>(some.size()));
  CHECK(shifts > 4 * rankc::test::some_of(20));
  CHECK((shifts == 4 * 34 || !rankc::test::plants_all()));
}

TEST_CASE("what a rank has at a time, and keeps, does not grow with the ring") {
  for (const int of_group : {1, 2}) {
    CAPTURE(of_group);
    const rankc::plan_data plan = sequences::ring_of(4, of_group);
    const lowered few = lower(plan, dtype::f64);
    const body& four = block_of(few);
    for (const int ranks : {5, 8}) {
      CAPTURE(ranks);
      const rankc::plan_data larger = sequences::ring_of(ranks, of_group);
      const lowered many = lower(larger, dtype::f64);
      const body& b = block_of(many);
      CHECK(b.forward_temp == four.forward_temp);
      CHECK(b.backward_temp == four.backward_temp);
      CHECK(b.saved_bytes == four.saved_bytes);
    }
  }
}

TEST_CASE(
    "each shift is under way beside a step of attention, but the first of backward, and before it is waited "
    "for") {
  for (const auto& [ranks, of_group] : {std::pair(2, 1), {3, 1}, {4, 1}, {2, 2}, {3, 4}}) {
    CAPTURE(ranks);
    CAPTURE(of_group);
    const rankc::plan_data plan = sequences::ring_of(ranks, of_group);
    const lowered l = lower(plan, dtype::f64);
    const program p = expand_train(l);
    const std::vector<op>& ops = p.ranks[0].ops;
    int beside = 0, shifts = 0;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (!is_shift_op(ops[i])) continue;
      ++shifts;
      CHECK(ops[i].stream != 0);
      bool attends = false;
      const auto waits = [&](const op& o) {
        return std::find(o.waits.begin(), o.waits.end(), static_cast<int>(i)) != o.waits.end();
      };
      // An op waits for this shift itself, or for a later one on its lane.
      std::size_t end = i + 1;
      const auto follows = [&](const op& o) {
        return waits(o) || std::any_of(o.waits.begin(), o.waits.end(), [&](int w) {
                 return static_cast<std::size_t>(w) > i && is_shift_op(ops[static_cast<std::size_t>(w)]);
               });
      };
      for (; end < ops.size() && !(ops[end].stream == 0 && follows(ops[end])); ++end)
        attends |= ops[end].row.starts_with("ring_attention");
      CHECK(end < ops.size());
      beside += attends;
    }
    CHECK(shifts == 3 * (ranks - 1));
    CHECK(beside == shifts - 1);
  }
}

}  // namespace lowering_test
