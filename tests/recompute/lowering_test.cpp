// SPDX-License-Identifier: Apache-2.0
// Recomputation in programs: the values that layers keep, the ops that backward repeats and when, memory,
// costs. A program that leaves out a part of it is refused.
#include <doctest/doctest.h>

#include <rankc/codegen/equivalence.hpp>
#include <rankc/codegen/lowered.hpp>
#include <rankc/codegen/names.hpp>
#include <rankc/codegen/prove.hpp>
#include <rankc/schedule/timing.hpp>

#include <emit/emit.hpp>
#include <passes/explain.hpp>

#include <algorithm>
#include <set>
#include <stdexcept>

#include "../families/check_lowered.hpp"
#include "../some_of.hpp"
#include "plans.hpp"

namespace lowering_test {

using namespace rankc::codegen;

namespace {

const std::vector<recomputing::variant>& all() {
  static const std::vector<recomputing::variant> plans = recomputing::plans();
  return plans;
}
const rankc::plan_data& find(const std::string& job, const std::string& what) {
  for (const recomputing::variant& v : all())
    if (v.job == job && v.what == what) return v.plan;
  throw std::logic_error("no plan of " + job + " recomputes " + what);
}
const body& block(const lowered& l) { return l.bodies.at(1); }

std::vector<std::string> functions(std::span<const node> list, const body& b) {
  std::vector<std::string> names;
  for (const node& n : list) names.emplace_back(b.function(n));
  return names;
}
std::vector<std::string> again(const body& b) {
  std::vector<std::string> names;
  for (const node& n : b.backward)
    if (n.again) names.emplace_back(b.function(n));
  return names;
}
std::size_t most_bytes(const lowered& l) {
  std::size_t bytes = 0;
  for (const pipeline_rank& r : l.ranks) bytes = std::max(bytes, r.arena.bytes);
  return bytes;
}

}  // namespace

TEST_CASE("programs that recompute are proven, are the model, and take what is counted, on either target") {
  int programs = 0;
  std::size_t n = 0;
  for (const recomputing::variant& v : all()) {
    if (v.what == "kept") continue;
    for (const auto& [to, type] :
         {std::pair(target::host, dtype::f64), std::pair(target::cuda, dtype::bf16)}) {
      if (!rankc::test::takes(n++)) continue;
      CAPTURE(v.plan.name);
      const lowered l = lower(v.plan, type, to);
      for (const program& p : {expand_train(l), expand_evaluate(l)}) {
        const verdict proof = prove(p);
        REQUIRE_MESSAGE(proof.ok, (proof.reasons.empty() ? "" : proof.reasons.front()));
        const equivalence e = check_equivalence(p, proof, specify(v.plan));
        CHECK_MESSAGE(e.holds, (e.reasons.empty() ? "" : e.reasons.front()));
        ++programs;
      }
      check_arenas(l);
    }
  }
  CHECK(programs > rankc::test::some_of(200));
}

TEST_CASE("a layer that recomputes everything keeps its input, and repeats forward up to its last product") {
  for (const auto to : {target::host, target::cuda}) {
    const lowered kept = lower(find("gpt2_eight", "kept"), dtype::f32, to),
                  full = lower(find("gpt2_eight", "full"), dtype::f32, to);
    CHECK(block(kept).saved_bytes > 0);
    CHECK(block(full).saved_bytes == 0);
    std::vector<std::string> forward = functions(block(full).forward, block(full));
    CHECK(forward == functions(block(kept).forward, block(kept)));  // forward is unchanged
    const std::vector<std::string> repeated = functions(block(full).calls(phase::recompute), block(full));
    REQUIRE(repeated.size() < forward.size());
    CHECK(std::equal(repeated.begin(), repeated.end(), forward.begin()));
    const std::span<const node> rest = std::span(block(full).forward).subspan(repeated.size());
    CHECK(std::string(block(full).function(rest.front())).starts_with("linear"));  // the block's last GEMM
    CHECK(std::count_if(rest.begin(), rest.end(), [](const node& n) { return n.row->communicates(); }) == 1);
    CHECK(functions(block(full).calls(phase::backward), block(full)) ==
          functions(block(kept).backward, block(kept)));
    for (const body* b : {&full.bodies.front(), &full.bodies.back()})
      CHECK(b->calls(phase::recompute).empty());
    CHECK(most_bytes(full) < most_bytes(kept));
  }
}

TEST_CASE("of some kinds: their ops, and the gathers behind them") {
  using list = std::vector<std::string>;
  const auto repeats = [](const char* what, target to) {
    return again(block(lower(find("gpt2_eight", what), dtype::f32, to)));
  };
  for (const auto to : {target::host, target::cuda}) {
    CHECK(repeats("attention", to) == list{"attention"});
    CHECK(repeats("activations", to) == list{"gelu"});
    CHECK(repeats("norms", to) == list{"layer_norm", "all_gather", "layer_norm", "all_gather"});
    CHECK(repeats("kinds", to) ==
          list{"layer_norm", "all_gather", "attention", "layer_norm", "all_gather", "gelu"});
    CHECK(repeats("kept", to).empty());
  }
}

TEST_CASE("every so many-th layer has a form of its own, counted through the model") {
  const lowered l = lower(find("gpt2_eight", "all_but_attention_of_third"), dtype::f32);
  REQUIRE(l.bodies.size() == 4);
  CHECK(l.bodies[1].name == "block");
  CHECK(l.bodies[2].name == "block_recomputed");
  CHECK(again(l.bodies[1]).empty());
  CHECK(!again(l.bodies[2]).empty());
  std::set<std::string> recomputing;
  for (const pipeline_rank& r : l.ranks)
    for (const stage_plan& s : r.stages)
      for (const layer_use& use : s.layers)
        if (use.kind == 2) recomputing.insert(use.name);
  CHECK(recomputing == std::set<std::string>{"layers.2", "layers.5"});
}

TEST_CASE("the halves of backward: nothing is repeated twice, and each half has what it reads") {
  for (const auto to : {target::host, target::cuda})
    for (const char* what : {"full", "activations", "norms", "attention", "kinds"}) {
      CAPTURE(what);
      const body b = block(lower(find("gpt2_zbv", what), dtype::f32, to));
      const std::vector<std::string> all = again(b), forward = functions(b.forward, b);
      for (const std::string& f : std::set<std::string>(all.begin(), all.end()))
        CHECK(std::count(all.begin(), all.end(), f) <= std::count(forward.begin(), forward.end(), f));
      const auto second = b.calls(phase::backward_weight);
      const bool in_second = std::any_of(second.begin(), second.end(), [](const node& n) { return n.again; });
      // Only the gradient of the block's last weight reads the activation's result; both halves have the
      // activation's input.
      CHECK(in_second == (std::string(what) == "activations" || std::string(what) == "kinds"));
    }
  const lowered kept = lower(find("gpt2_zbv", "kept"), dtype::f32),
                full = lower(find("gpt2_zbv", "full"), dtype::f32);
  CHECK(block(full).saved_bytes == 0);
  CHECK(block(full).halfway_bytes > block(kept).halfway_bytes);
  CHECK(most_bytes(full) < most_bytes(kept));
}

TEST_CASE("a stage repeats what its last layer needs before it waits for the gradient") {
  const lowered l = lower(find("gpt2_eight", "full"), dtype::f32);
  const pipeline_rank& first = l.ranks.front();
  const std::vector<item>& items = first.train.items;
  int backwards = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i].does != phase::recompute) continue;
    const item& rest = items[i + 1];
    CHECK((rest.does == phase::backward && rest.microbatch == items[i].microbatch));
    const auto waits_for_gradient = [&](const item& it) {
      return std::any_of(it.waits.begin(), it.waits.end(),
                         [&](int w) { return items[w].what == item_kind::receive; });
    };
    CHECK(!waits_for_gradient(items[i]));
    CHECK(waits_for_gradient(rest));
    ++backwards;
  }
  CHECK(backwards == 3);
}

TEST_CASE("what is repeated is printed: by the pass, and by describe") {
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != text.npos;
  };
  const std::string pass =
      explain(find("gpt2_eight", "full_of_second"), dtype::f32, target::host, "recompute");
  CHECK(has(pass, "block, recompute: nothing changes\n"));
  CHECK(has(pass, "block_recomputed, recompute\n"));
  CHECK_MESSAGE(has(pass, "+     h1_again[16, 16] = all_gather(n1_again[8, 16]), over tp\n"), pass);
  CHECK(!has(explain(find("gpt2_eight", "kept"), dtype::f32, target::host, "recompute"), "again"));
  const lowered l = lower(find("gpt2_eight", "full_of_second"), dtype::f32);
  const std::string text = describe_text(l), bytes = readable_bytes(l.bodies[1].saved_bytes);
  CHECK(has(
      text,
      "recomputation: full, in one repeated layer of 2\n  block_recomputed keeps 0 B of a microbatch, not " +
          bytes +
          "; backward repeats 18 ops, 3 of them collectives, 3.33e+03 FLOPs a token, 81 % of forward's\n"));
  CHECK(has(describe_json(l), "\"recomputation\":[{"));
  CHECK(!has(describe_text(lower(find("gpt2_eight", "kept"), dtype::f32)), "recomputation"));
}

TEST_CASE("what backward repeats takes time") {
  const rankc::plan_data &kept = find("gpt2_eight", "kept"), &full = find("gpt2_eight", "full"),
                         &half = find("gpt2_eight", "full_of_second"),
                         &attention = find("gpt2_eight", "attention"), &norms = find("gpt2_eight", "norms");
  CHECK(kept.expected.again.empty());
  // In units of an average stage's forward. Each of the two stages has three of the six blocks; `scores` is
  // the attention op of one block.
  double forward = 0;
  for (const rankc::layer_kind& k : full.kinds)
    forward += static_cast<double>(k.count * rankc::cost_of(k.ops, full.dims).forward) / 2;
  const auto cost_of_block = [&](auto is_counted) {
    const rankc::trace& t = full.kinds[1].ops;
    double cost = 0;
    for (std::size_t i = 0; i < t.forward_ops; ++i)
      if (is_counted(t.ops[i]))
        cost += rankc::cost_of(t, t.ops[i], full.dims) / t.values[t.input].shape[0].size;
    return cost;
  };
  const double all = cost_of_block([](const rankc::op&) { return true; }),
               scores = cost_of_block(
                   [](const rankc::op& o) { return o.kind->family == rankc::op_family::attention; });
  REQUIRE(full.expected.again.size() == 2);
  CHECK(full.expected.again[0] < 3 * all / forward);
  CHECK(full.expected.again[0] > 0.7 * 3 * all / forward);  // neither the last GEMM nor the residual sum
  CHECK(half.expected.again[0] + half.expected.again[1] ==
        doctest::Approx(full.expected.again[0]).epsilon(1e-12));
  CHECK(attention.expected.again[0] == doctest::Approx(3 * scores / forward).epsilon(1e-12));
  CHECK(norms.expected.again[0] > 0);
  CHECK(norms.expected.again[0] < full.expected.again[0]);
  const auto makespan = [](const rankc::plan_data& p) { return rankc::time(p.actions, p.expected).makespan; };
  CHECK(makespan(full) > 1.1 * makespan(kept));
  CHECK(makespan(half) > makespan(kept));
  CHECK(makespan(full) > makespan(half));
  const rankc::action b{rankc::action_kind::B, 0, 0}, i{rankc::action_kind::I, 0, 0},
      w{rankc::action_kind::W, 0, 0}, f{rankc::action_kind::F, 0, 0};
  for (const rankc::action& a : {b, i})
    CHECK(full.expected.of(a) == doctest::Approx(kept.expected.of(a) + full.expected.again[0]));
  for (const rankc::action& a : {w, f}) CHECK(full.expected.of(a) == kept.expected.of(a));
}

TEST_CASE("a program that leaves out a repeated op, or repeats it of something else, is refused") {
  const rankc::plan_data& plan = find("llama_tp2", "full");
  const lowered l = lower(plan, dtype::f32);
  const program sound = expand_train(l);
  const verdict order = prove(sound);
  REQUIRE(order.ok);
  const specification model = specify(plan);
  const std::set<std::string_view> repeatable{"rms_norm", "linear", "rope", "attention", "add", "swiglu"};
  int left_out = 0, of_another = 0;
  const std::vector<op>& ops = sound.ranks[0].ops;
  for (std::size_t at = 0; at < ops.size(); ++at) {
    const bool repeats = ops[at].name.find("again") != std::string::npos ||
                         (ops[at].name.starts_with("0B0: layers.1") && repeatable.contains(ops[at].row));
    if (!repeats) continue;
    CAPTURE(ops[at].name);
    {
      program p = sound;
      op& gone = p.ranks[0].ops[at];
      gone.kind = op_kind::compute;
      gone.row = {};
      gone.reads.clear();
      gone.writes.clear();
      gone.views.clear();
      CHECK(!prove(p).ok);
      ++left_out;
    }
    // The norm reads what the same op of the last layer read, which belongs to another layer.
    const std::string name = ops[at].name;
    if (!name.starts_with("0B0: layers.1: rms_norm")) continue;
    program p = sound;
    const auto other = std::find_if(
        ops.begin(), ops.end(), [](const op& o) { return o.name.starts_with("0F0: layers.0: rms_norm"); });
    REQUIRE(other != ops.end());
    p.ranks[0].ops[at].reads[0] = other->reads[0];
    const equivalence e = check_equivalence(p, order, model);
    CHECK(!e.holds);
    ++of_another;
  }
  CHECK(left_out > 20);
  CHECK(of_another == 2);
}

}  // namespace lowering_test
