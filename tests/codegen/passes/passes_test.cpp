// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <rankc/codegen/certificate.hpp>
#include <rankc/codegen/lowered.hpp>
#include <rankc/codegen/names.hpp>
#include <rankc/codegen/prove.hpp>
#include <rankc/schedule/colour.hpp>
#include <rankc/schedule/complete.hpp>
#include <rankc/rules/layers/lowerable.hpp>
#include <rankc/schedule/timing.hpp>
#include <rankc/codegen/text_template.hpp>

#include <map>
#include <set>
#include <stdexcept>

#include "plans.hpp"

namespace passes_test {

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
  for (const node& each : backward ? b.backward : b.forward) n += b.function(each) == function;
  return n;
}
}  // namespace

TEST_CASE("a block's collectives follow from its types") {
  const auto plain = programs::make(programs::jobs[0], layout("tp2")),
             sp = programs::make(programs::jobs[0], layout("tp2_sp"));
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
      for (const node& n : *list) CHECK(!n.row->communicates());
}

TEST_CASE("gradients of one input are summed as they are made") {
  const auto plan = programs::make(programs::jobs[0], layout("one"));
  const body b = lowered_plan(plan).bodies[1];
  int adding = 0;
  for (const node& n : b.backward)
    adding += b.function(n) == "linear_dx" && n.accumulate == accumulation::add;
  CHECK(adding == 2);  // k's and v's gradients are added to q's
}

TEST_CASE("buffers that live at the same time never overlap") {
  std::size_t lists = 0, pairs = 0;
  for (const programs::job& j : programs::jobs)
    for (const programs::layout& l : programs::layouts) {
      const auto plan = programs::make(j, l);
      const lowered low = lowered_plan(plan);
      for (const body& b : low.bodies)
        for (const auto* list : {&b.forward, &b.backward}) {
          std::map<int, std::pair<int, int>> lives;
          lists += !list->empty();
          for (int i = 0; i < static_cast<int>(list->size()); ++i)
            for (const auto& p : (*list)[i].ports)
              if (const int v = p.at.value; b.values[v].where == space::temp) {
                lives.try_emplace(v, i, i);
                lives[v].second = i;
              }
          for (auto [x, lx] : lives)
            for (auto [y, ly] : lives) {
              if (x >= y || lx.second < ly.first || ly.second < lx.first) continue;
              const value &p = b.values[x], &q = b.values[y];
              ++pairs;
              CHECK((p.offset + p.bytes <= q.offset || q.offset + q.bytes <= p.offset));
            }
        }
    }
  CHECK(lists == 6 * std::size(programs::jobs) *
                     std::size(programs::layouts));  // forward and backward of embedding, block and head
  CHECK(pairs > 2 * lists);
}

TEST_CASE("1F1B holds at most pp microbatches, GPipe all of them") {
  const auto f = programs::make(programs::jobs[1], layout("pp4_1f1b")),
             g = programs::make(programs::jobs[1], layout("pp2_gpipe"));
  const lowered a = lowered_plan(f), b = lowered_plan(g);
  const auto saved = [](const pipeline_rank& r) {
    int count = 0;
    for (const pool& p : r.arena.pools)
      if (p.what == kept::output) count = p.count;
    return count / (static_cast<int>(r.stages[0].layers.size()) - 1);
  };
  for (const pipeline_rank& r : a.ranks)
    if (r.stages[0].layers.size() > 1) CHECK(saved(r) == 4 - r.index);
  for (const pipeline_rank& r : b.ranks) CHECK(saved(r) == 4);
}

TEST_CASE("every message has a sender, a receiver and one size") {
  const auto plan = programs::make(programs::jobs[1], layout("all_1f1b"));
  const lowered l = lowered_plan(plan);
  std::set<std::string> sent, received;
  for (const pipeline_rank& r : l.ranks)
    for (const item& i : r.train.items) {
      if (i.what == item_kind::send) CHECK(sent.insert(i.name).second);
      if (i.what == item_kind::receive) CHECK(received.insert(i.name).second);
    }
  CHECK(sent == received);
  CHECK(sent.size() == 4);  // forward and backward of two microbatches
}

TEST_CASE("a directed pair of ranks has one communicator, whatever it carries") {
  std::map<std::string, std::vector<std::string>> edges;
  for (const programs::pipeline& p : programs::pipelines()) {
    const auto plan = programs::make(p);
    for (const communicator& c : lowered_plan(plan).communicators)
      if (c.name.starts_with("activations") || c.name.starts_with("gradients"))
        edges[p.layout].push_back(c.name.substr(0, c.name.find(" at")));
  }
  using names = std::vector<std::string>;
  CHECK(edges["here"].empty());
  CHECK(edges["interleaved_2"] ==
        names{"activations and gradients 0 -> 1", "gradients and activations 1 -> 0"});
  CHECK(edges["dual_pipe_v_2"] ==
        names{"activations and gradients 0 -> 1", "gradients and activations 1 -> 0"});
  CHECK(edges["interleaved_3"] == names{"activations 0 -> 1", "gradients 1 -> 0", "activations 1 -> 2",
                                        "gradients 2 -> 1", "activations 2 -> 0", "gradients 0 -> 2"});
  CHECK(edges["dual_pipe_2"] ==
        names{"activations and gradients 0 -> 1", "gradients and activations 1 -> 0"});
  CHECK(edges["zero_bubble_v_3"] ==
        names{"activations and gradients 0 -> 1", "gradients and activations 1 -> 0",
              "activations and gradients 1 -> 2", "gradients and activations 2 -> 1"});
}

TEST_CASE("stages that follow each other on one rank hand over by a buffer") {
  const auto plan = programs::make({"tiny_gpt2", "v", programs::order::dual_pipe_v, 1, 1, 2, 3});
  const lowered l = lowered_plan(plan);
  const step& s = l.ranks[1].train;
  for (const item& i : s.items) CHECK(i.name.find("stage 1 -> 2") == i.name.npos);
  const stage_plan &before = l.ranks[1].stages[0], &after = l.ranks[1].stages[1];
  REQUIRE((before.stage == 1 && after.stage == 2));
  const auto given = [](const layer_call& c, formal f) { return std::pair(c[f].what, c[f].index); };
  const int forward = static_cast<int>(phase::forward), backward = static_cast<int>(phase::backward);
  // One stage's outputs are the next stage's inputs: a single buffer for each microbatch.
  CHECK(given(before.calls[forward].back(), formal::y) == std::pair(kept::activation, 1));
  CHECK(given(after.calls[forward].front(), formal::x) == std::pair(kept::activation, 0));
  CHECK(given(before.calls[backward].back(), formal::dy) == std::pair(kept::gradient, 1));
  CHECK(given(after.calls[backward].front(), formal::dx) == std::pair(kept::gradient, 0));
  for (int m = 0; m < 3; ++m) {
    CHECK(s.find(kept::activation, 2, m)->name == "x_2F" + std::to_string(m));
    CHECK(s.find(kept::gradient, 2, m)->name == "d_x_2B" + std::to_string(m));
  }
}

TEST_CASE("backward in two halves: what the input's gradient needs, and every gradient of a weight") {
  for (const char* job : {"tiny_gpt2", "tiny_llama"}) {
    const auto plan = programs::make({job, "zbv", programs::order::zero_bubble_v, 1, 2, 2, 3});
    for (const lowered& l : {lower(plan, dtype::f64), lower(plan, dtype::bf16, target::cuda)})
      for (const body& b : l.bodies) {
        CAPTURE(b.name);
        CHECK(b.backward.size() ==
              b.calls(phase::backward_input).size() + b.calls(phase::backward_weight).size());
        CHECK(b.calls(phase::backward_input).empty() == (b.x_bytes == 0));
        CHECK(!b.uses(phase::backward_input, space::gradient));
        CHECK(!b.uses(phase::backward_weight, space::dx));
        std::set<int> made;
        for (const node& n : b.calls(phase::backward_weight))
          for (const operand& o : writes_of(b, n))
            if (b.at(o).where == space::gradient) made.insert(b.at(o).of);
        CHECK(made.size() == b.parameters.size());
      }
  }
}

TEST_CASE("a schedule without halves has none, and a half followed by its other is whole") {
  const auto whole = programs::make({"tiny_gpt2", "1f1b", programs::order::one_f_one_b, 1, 1, 2, 3});
  for (const body& b : lowered_plan(whole).bodies)
    CHECK((b.calls(phase::backward_input).empty() && b.calls(phase::backward_weight).empty()));
  const auto alone = programs::make({"tiny_gpt2", "zbv", programs::order::zero_bubble_v, 1, 1, 1, 3});
  CHECK(!lowered_plan(alone).splits_backward());
}

TEST_CASE(
    "values that live at the same time never share bytes, and what the second half reads lives until then") {
  std::size_t pairs = 0;
  for (const programs::pipeline& p : programs::pipelines()) {
    const auto plan = programs::make(p);
    const lowered l = lowered_plan(plan);
    const auto& actions = plan.actions.actions;
    for (const pipeline_rank& r : l.ranks)
      for (const placed_value& v : r.train.values) {
        CAPTURE(p.layout);
        for (const placed_value& w : r.train.values) {
          if (&v == &w || v.last < w.first || w.last < v.first) continue;
          ++pairs;
          CHECK((v.where + v.bytes <= w.where || w.where + w.bytes <= v.where));
        }
        if (v.what == kept::activation || v.what == kept::gradient) continue;
        for (int i = plan.actions.begin[r.index]; i < plan.actions.begin[r.index + 1]; ++i) {
          if (actions[i].stage != v.stage || actions[i].microbatch != v.microbatch ||
              !computes(actions[i].kind))
            continue;
          CHECK(i <= v.last);
          if (v.what != kept::output_gradient && v.what != kept::halfway) CHECK(i >= v.first);
        }
      }
  }
  CHECK(pairs > 10'000);
}

namespace {
/// Two microbatches run down and up a placement, one after the other, and then up the reversed one if it is
/// given.
rankc::action_table one_by_one(std::vector<int> rank_of_stage, int pp, std::vector<int> reversed = {}) {
  using rankc::action_kind;
  rankc::action_table t{{}, {0}, std::move(rank_of_stage), 2, false, std::move(reversed), 1};
  for (int r = 0; r < pp; ++r) {
    for (int m = 0; m < 2; ++m)
      for (int n = 0; n < 2 * t.stages(); ++n) {
        const int s = n < t.stages() ? n : 2 * t.stages() - 1 - n;
        if (t.rank_of(s, m) == r)
          t.actions.push_back({n < t.stages() ? action_kind::F : action_kind::B, s, m});
      }
    t.begin.push_back(static_cast<int>(t.actions.size()));
  }
  return rankc::complete(t);
}
/// The refusal of a plan with this table; empty if it is lowerable.
std::string refusal(const rankc::action_table& t, const std::vector<std::vector<int>>& shared = {}) {
  rankc::report out;
  check_lowerable(out, t, shared);
  return out.empty() ? ""
                     : "RC" + std::to_string(out.front().id) + ": " + std::string(out.front().text.view());
}
void check_proven(const rankc::plan_data& plan) {
  const verdict v = prove(expand_train(lowered_plan(plan)));
  CHECK_MESSAGE(v.ok, v.reasons.front());
}
}  // namespace

TEST_CASE("a rank has a lane for each rank that it sends to or receives from, whatever their number") {
  auto plan = programs::make({"tiny_gpt2", "loop", programs::order::interleaved, 1, 1, 4, 2});
  plan.actions = one_by_one({0, 2, 1, 3, 0, 2, 1, 3}, 4);
  check_proven(plan);
  plan.actions = one_by_one({0, 1, 0, 2, 0, 3, 1, 2}, 4);
  CHECK(refusal(plan.actions) == "");
  check_proven(plan);
  const auto names = [](const pipeline_rank& r) {
    std::string text;
    for (const lane& each : r.lanes) text += each.name + " ";
    return text;
  };
  const lowered l = lowered_plan(plan);
  CHECK(names(l.ranks[0]) == "compute reduce to_next to_2 to_prev from_next from_2 from_prev ");
  CHECK(names(l.ranks[1]) == "compute reduce to_prev to_next to_3 from_prev from_next from_3 ");
}

TEST_CASE("copies of a stage are summed in pairs of ranks: others are refused by name") {
  auto plan = programs::make({"tiny_gpt2", "f_b", programs::order::one_f_one_b, 1, 1, 4, 2});
  plan.actions = one_by_one({0, 1, 2, 3}, 4, {3, 2, 1, 0});
  check_proven(plan);
  plan.actions = one_by_one({0, 1, 2, 3}, 4, {1, 2, 3, 0});
  CHECK(refusal(plan.actions) ==
        "RC331: pipeline rank 1 has parameters in common with rank 0 and with rank 2, and this version sums "
        "gradients between two ranks alone; "
        "put the stages of both directions, and those of tied layers, on the same pairs of ranks, as "
        "dual_pipe does");
  CHECK_THROWS_AS(lowered_plan(plan), std::logic_error);
  // One direction; three layers on three ranks share a parameter.
  CHECK(refusal(one_by_one({0, 1, 2}, 3), {{0, 1, 2}})
            .starts_with("RC331: pipeline rank 0 has parameters in common with rank 1 and with rank 2"));
  CHECK(refusal(one_by_one({0, 1, 2}, 3), {{0, 2}}).empty());
}

TEST_CASE("a rank without a stage is refused by name") {
  CHECK(refusal(one_by_one({0, 2}, 3)) ==
        "RC332: pipeline rank 1 has none of the 2 stages; every rank has at least 1: take fewer ranks, or "
        "more stages");
}

TEST_CASE("colours are as few as lives that meet") {
  int slots[4];
  std::vector<rankc::buffer_use> all{
      {0, 4, &slots[0]}, {1, 2, &slots[1]}, {3, 5, &slots[2]}, {5, 6, &slots[3]}};
  CHECK(rankc::colour(all) == 2);
  CHECK((slots[0] != slots[1] && slots[2] == slots[1] && slots[3] == slots[0]));
  std::vector<lifetime> buffers{{0, 1, 100}, {1, 2, 300}, {2, 3, 100}};
  CHECK(place_intervals(buffers) == 256 + 512);
  CHECK(buffers[2].offset == 0);
}

TEST_CASE("the time line of 1F1B has GPipe's bubble") {
  for (const char* name : {"pp4_1f1b", "pp2_gpipe"}) {
    const auto plan = programs::make(programs::jobs[1], layout(name));
    const rankc::timing t = rankc::time(plan.actions);
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

namespace {
/// Lower a plan anew: its hash, and every training op with its address.
std::pair<std::uint64_t, std::string> program_of(const programs::job& j, const programs::layout& l,
                                                 dtype type) {
  const auto plan = programs::make(j, l);
  const lowered low = lower(plan, type);
  const program p = expand_train(low);
  return {low.hash, certificate(p, prove(p))};
}
}  // namespace

TEST_CASE("the same plan gives the same program, another plan another hash") {
  std::set<std::uint64_t> hashes;
  std::size_t plans = 0;
  for (const programs::job& j : programs::jobs) {
    if (j.layers != 4) continue;
    for (const programs::layout& l : programs::layouts) {
      CAPTURE(j.name);
      CAPTURE(l.name);
      const auto made = program_of(j, l, dtype::f32);
      CHECK(made == program_of(j, l, dtype::f32));
      hashes.insert(made.first);
      ++plans;
    }
  }
  hashes.insert(program_of(programs::jobs[0], programs::layouts[0], dtype::f64).first);
  CHECK(plans == 4 * std::size(programs::layouts));
  CHECK(hashes.size() == plans + 1);
}

namespace {
void check_all_used(const rankc::plan_data& plan) {
  CAPTURE(plan.name);
  const lowered l = lowered_plan(plan);
  const program train = expand_train(l), evaluate = expand_evaluate(l);
  for (std::size_t rank = 0; rank < train.ranks.size(); ++rank) {
    std::vector<access> touched;
    for (const program* p : {&train, &evaluate})
      for (const op& o : p->ranks[rank].ops)
        for (const auto* side : {&o.reads, &o.writes})
          touched.insert(touched.end(), side->begin(), side->end());
    std::sort(touched.begin(), touched.end(), [](auto& a, auto& b) { return a.begin < b.begin; });
    std::size_t reached = 0;
    for (const access& a : touched) {
      // Gaps are padding at most: behind a buffer, behind its last tensor, and at the loss, which only one
      // pipeline rank has.
      CHECK(a.begin < reached + 2 * alignment + 16 * sizeof(float));
      reached = std::max(reached, a.end);
    }
    CHECK(reached <= train.ranks[rank].arena_bytes);
    CHECK(aligned(reached) == train.ranks[rank].arena_bytes);
  }
}
}  // namespace

TEST_CASE("every planned byte is used, but for alignment") {
  for (const programs::job& j : programs::jobs)
    for (const programs::layout& l : programs::layouts)
      if (j.global_batch != 16) check_all_used(programs::make(j, l));
  for (const programs::pipeline& p : programs::pipelines()) check_all_used(programs::make(p));
}

TEST_CASE(
    "every reduction of gradients is a REDUCE_GRAD of its stage, or of the rank's last one; STEP has none") {
  int layer_by_layer = 0, of_rank = 0;
  for (const char* name : {"dp2", "all_gpipe", "all_1f1b", "pp2_1f1b", "pp2_dual", "tp2_dual_v"})
    for (const programs::job& j : {programs::jobs[1], programs::jobs[4]}) {
      const rankc::plan_data plan = programs::make(j, layout(name));
      const lowered l = lowered_plan(plan);
      for (const pipeline_rank& r : l.ranks) {
        CAPTURE(plan.name);
        CAPTURE(r.index);
        std::string last;
        for (int i = plan.actions.begin[r.index]; i < plan.actions.begin[r.index + 1]; ++i)
          if (plan.actions.actions[i].kind == rankc::action_kind::reduce_grad)
            last = rankc::codegen::token(plan.actions.actions[i]);
        bool goes_on = false;  // within a stage's backward, which is emitted layer by layer
        for (const item& i : r.train.items) {
          const bool computes = i.what == item_kind::forward || i.what == item_kind::backward ||
                                i.what == item_kind::backward_layer;
          if (computes) goes_on = i.what == item_kind::backward_layer;
          if (computes || i.what == item_kind::send || i.what == item_kind::receive) continue;
          if (i.what != item_kind::reduce) {
            CHECK(i.action.ends_with("STEP"));
            continue;
          }
          const int stage = r.buckets[i.bucket].stage;
          CHECK(i.action == (stage < 0 ? last : std::to_string(r.stages[stage].stage) + "REDUCE_GRAD"));
          layer_by_layer += goes_on && stage >= 0;
          of_rank += stage < 0;
        }
      }
    }
  CHECK(layer_by_layer > 0);
  CHECK(of_rank > 0);
}

}  // namespace passes_test
