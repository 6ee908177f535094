// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <rankc/codegen/intervals.hpp>
#include <rankc/codegen/lowered.hpp>
#include <rankc/schedule/timing.hpp>
#include <rankc/codegen/text_template.hpp>

#include <map>
#include <set>
#include <stdexcept>

#include "plans.hpp"

using namespace rankc::codegen;

namespace {
lowered lowered_plan(const rankc::plan_data& plan) { return lower(plan, dtype::f32); }
const programs::layout& layout(const std::string& name) {
  for (const auto& l : programs::layouts)
    if (name == l.name) return l;
  throw std::logic_error("no such layout");
}
int count(const body& b, bool backward, const std::string& function) {
  int n = 0;
  for (const kernel& k : backward ? b.backward : b.forward) n += k.function == function;
  return n;
}
}  // namespace

TEST_CASE("a block's collectives follow from its types") {
  const auto plain = programs::make(programs::jobs[0], layout("tp2")), sp = programs::make(programs::jobs[0], layout("tp2_sp"));
  const lowered a = lowered_plan(plain), b = lowered_plan(sp);
  for (bool backward : {false, true}) {
    CHECK(count(a.bodies[1], backward, "all_reduce") == 2);
    CHECK(count(a.bodies[1], backward, "all_gather") == 0);
    CHECK(count(b.bodies[1], backward, "all_gather") == 2);
    CHECK(count(b.bodies[1], backward, "reduce_scatter") == 2);
    CHECK(count(b.bodies[1], backward, "all_reduce") == 0);
  }
}

TEST_CASE("conversions over axes of one rank leave nothing behind") {
  const auto plan = programs::make(programs::jobs[0], layout("one"));
  const lowered l = lowered_plan(plan);
  CHECK(l.communicators.empty());
  CHECK(l.messages.empty());
  for (const body& b : l.bodies)
    for (const auto* list : {&b.forward, &b.backward})
      for (const kernel& k : *list) CHECK(!k.collective_);
}

TEST_CASE("gradients of one input are summed as they are made") {
  const auto plan = programs::make(programs::jobs[0], layout("one"));
  const body b = lowered_plan(plan).bodies[1];
  int adding = 0;
  for (const kernel& k : b.backward) adding += k.function == "linear_dx" && k.accumulate == accumulation::add;
  CHECK(adding == 2);  // k and v onto q
}

TEST_CASE("buffers that live at the same time never overlap") {
  for (const programs::job& j : programs::jobs)
    for (const programs::layout& l : programs::layouts) {
      const auto plan = programs::make(j, l);
      const lowered low = lowered_plan(plan);
      for (const body& b : low.bodies)
        for (const auto* list : {&b.forward, &b.backward}) {
          std::map<int, std::pair<int, int>> lives;
          for (int i = 0; i < static_cast<int>(list->size()); ++i)
            for (const auto* side : {&(*list)[i].writes, &(*list)[i].reads})
              for (const operand& o : *side)
                if (o.where == space::temp) {
                  lives.try_emplace(o.index, i, i);
                  lives[o.index].second = i;
                }
          for (auto [x, lx] : lives)
            for (auto [y, ly] : lives) {
              if (x >= y || lx.second < ly.first || ly.second < lx.first) continue;
              const buffer &p = b.buffers[x], &q = b.buffers[y];
              CHECK((p.offset + p.bytes <= q.offset || q.offset + q.bytes <= p.offset));
            }
        }
    }
}

TEST_CASE("1F1B holds at most pp microbatches, GPipe all of them") {
  const auto f = programs::make(programs::jobs[1], layout("pp4_1f1b")), g = programs::make(programs::jobs[1], layout("pp2_gpipe"));
  const lowered a = lowered_plan(f), b = lowered_plan(g);
  for (const pipeline_rank& r : a.ranks) CHECK(r.stages[0].slots == 4 - r.index);
  for (const pipeline_rank& r : b.ranks) CHECK(r.stages[0].slots == 4);
}

TEST_CASE("every message has a sender, a receiver and one size") {
  const auto plan = programs::make(programs::jobs[1], layout("all_1f1b"));
  const lowered l = lowered_plan(plan);
  std::set<std::string> sent, received;
  for (const pipeline_rank& r : l.ranks)
    for (const item& i : r.train) {
      if (i.what == item_kind::send) CHECK(sent.insert(i.name).second);
      if (i.what == item_kind::receive) CHECK(received.insert(i.name).second);
    }
  CHECK(sent == received);
  CHECK(sent.size() == 4);  // two microbatches, there and back
}

TEST_CASE("colours are as few as lives that meet") {
  std::vector<span_of_time> all{{0, 4}, {1, 2}, {3, 5}, {5, 6}};
  CHECK(colour_intervals(all) == 2);
  std::vector<lifetime> buffers{{0, 1, 100}, {1, 2, 300}, {2, 3, 100}};
  CHECK(place_intervals(buffers) == 256 + 512);
  CHECK(buffers[2].offset == 0);
}

TEST_CASE("the time line of 1F1B has GPipe's bubble") {
  for (const char* name : {"pp4_1f1b", "pp2_gpipe"}) {
    const auto plan = programs::make(programs::jobs[1], layout(name));
    const timing t = time(plan.actions);
    const double pp = plan.dims.pp, m = plan.actions.microbatches;
    CHECK(t.bubble == doctest::Approx((pp - 1) / (m + pp - 1)));
    CHECK(t.makespan == 3 * (m + pp - 1));
  }
}

TEST_CASE("templates: every hole has a value and every value a hole") {
  CHECK(fill("a @x@ b\n", {{"x", "1"}}) == "a 1 b\n");
  CHECK(fill("  @x@\nend\n", {{"x", "1\n2\n"}}) == "  1\n  2\nend\n");
  CHECK(fill("  @x@\nend\n", {{"x", ""}}) == "end\n");
  CHECK_THROWS_WITH(fill("@x@", {}), "template: no value for @x@");
  CHECK_THROWS_WITH(fill("x", {{"y", "1"}}), "template: nothing asks for @y@");
}

TEST_CASE("the same plan gives the same program") {
  const auto plan = programs::make(programs::jobs[1], layout("all_1f1b"));
  CHECK(lowered_plan(plan).hash == lowered_plan(plan).hash);
  const auto other = programs::make(programs::jobs[1], layout("all_gpipe"));
  CHECK(lowered_plan(plan).hash != lowered_plan(other).hash);
}

TEST_CASE("every planned byte is used, but for alignment") {
  for (const programs::job& j : programs::jobs)
    for (const programs::layout& l : programs::layouts) {
      if (j.global_batch == 16) continue;
      const auto plan = programs::make(j, l);
      CAPTURE(plan.name);
      for (const rank_program& r : expand_train(lowered_plan(plan)).ranks) {
        std::vector<access> touched;
        for (const op& o : r.ops)
          for (const auto* side : {&o.reads, &o.writes}) touched.insert(touched.end(), side->begin(), side->end());
        std::sort(touched.begin(), touched.end(), [](auto& a, auto& b) { return a.begin < b.begin; });
        std::size_t reached = 0;
        for (const access& a : touched) {
          CHECK(a.begin < reached + alignment + 16 * sizeof(float));  // of the buffer, and of the last tensor in it
          reached = std::max(reached, a.end);
        }
        CHECK(reached <= r.arena_bytes);
        CHECK(aligned(reached) == r.arena_bytes);
      }
    }
}
