// SPDX-License-Identifier: Apache-2.0
// The steps of a plan fit together: each is training or evaluation, begins with the state that the other
// leaves, and keeps tables, padding and types.
#include <doctest/doctest.h>

#include <lora/plans.hpp>

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "../../example_plans.hpp"
#include "by_hand.hpp"
#include "plans.hpp"
#include "refused.hpp"

namespace steps_test {

using namespace equivalence_tests;
using rankc::codegen::access;  // unistd.h has a function of this name

namespace {

/// Both steps of a plan, and the state that they keep.
struct both {
  kept_state train, evaluate;
  specification model;

  both(const rankc::plan_data& plan, target to, dtype type) : model(specify(plan)) {
    const lowered l = lower(plan, type, to);
    train = kept_by(expand_train(l));
    evaluate = kept_by(expand_evaluate(l));
  }
};

said said_of_steps(const std::vector<kept_state>& steps, const specification& model) {
  const equivalence e = check_steps(steps, model);
  CHECK(e.holds == e.reasons.empty());
  CHECK(e.holds == (e.claims.size() == 1));
  return e.holds ? said{} : rankc::test::said_in(e.reasons.at(0));
}

const rankc::plan_data& gated() {
  static const rankc::plan_data plan = [] {
    for (split_plan& p : adapting::plans())
      if (p.job == "gated" && p.layout == "dp2") return std::move(p.plan);
    throw std::logic_error("no such plan");
  }();
  return plan;
}

specification frozen(specification model) {
  for (specification::layer& l : model.layers)
    for (specification::parameter& p : l.parameters) p.trainable = false;
  return model;
}

kept_tensor& find(kept_state& s, holding_kind kind, const std::string& name = "") {
  for (kept_tensor& t : s.ranks.at(0).tensors)
    if (t.what.kind == kind && (name.empty() || t.what.name == name)) return t;
  throw std::logic_error("no such tensor");
}

/// A program whose ranks begin and end with three additional elements, which the model does not have.
program_by_hand with(const holding& h) {
  program_by_hand x = two_ranks_by_hand();
  for (int r = 0; r < 2; ++r) {
    std::vector<op>& ops = x.p.ranks[static_cast<std::size_t>(r)].ops;
    const access a{1 << 14, (1 << 14) + 24, 500 + r, element_type::f64};
    ops.front().writes.push_back(a);
    ops.front().holds.push_back(h);
    ops.back().reads.push_back(a);
    ops.back().holds.push_back(h);
  }
  return x;
}
const holding padding{.kind = holding_kind::padding},
    table{.kind = holding_kind::rotary, .positions = 3, .dim = 1, .theta = 10000};

access& last_read(program_by_hand& x) { return x.p.ranks[0].ops.back().reads.back(); }

/// Before its end, rank 0 overwrites the three elements with zeros or with a row of the table.
void overwrite(program_by_hand& x, bool with_zeros) {
  std::vector<op>& ops = x.p.ranks[0].ops;
  op o{.kind = op_kind::compute, .name = "more", .waits = {}, .reads = {}, .writes = {}};
  access& left = last_read(x);
  left.value = 600;
  o.writes = {left};
  o.row = with_zeros ? "clear" : "copy";
  if (with_zeros) {
    o.views = {{.port = "y", .written = true, .accesses = {0, 1}, .shape = {{words}, 1}}};
  } else {
    o.reads = {ops.back().reads.at(0)};
    const view row{.port = "x", .accesses = {0, 1}, .shape = {{1, words}, 2}, .stride = words};
    o.views = {row, row};
    o.views[0].port = "y";
    o.views[0].written = true;
  }
  ops.insert(ops.end() - 1, o);
  x.order.position[0].push_back(x.order.position[0].back() + 1);
}

placed why(const program_by_hand& x) { return placed_of(reason(x, model_by_hand())); }

}  // namespace

TEST_CASE("lowered steps keep the same tensors in the same bytes") {
  for (const both& b :
       {both(examples::plan("gpt_dp2_tp2_pp2"), target::host, dtype::f32),
        both(small_llama(), target::cuda, dtype::bf16), both(sharded_gpt(), target::host, dtype::f64),
        both(gated(), target::host, dtype::f32), both(large_world(4, 2, 2, 8), target::cuda, dtype::bf16)}) {
    CHECK(said_of_steps({b.train, b.evaluate}, b.model) == said{});
    CHECK(said_of_steps({b.evaluate, b.train}, b.model) == said{});
  }
}

TEST_CASE("the steps are training and evaluation, each once, or evaluation alone of a frozen model") {
  both b(small_llama(), target::host, dtype::f32);
  const specification still = frozen(b.model);
  const char *trained = "parameters that are trained", *none = "no parameter that is trained";
  CHECK(said_of_steps({b.train}, b.model) == said{7737, {"0"}});
  CHECK(said_of_steps({}, b.model) == said{7737, {"0"}});
  CHECK(said_of_steps({b.evaluate}, b.model) == said{7738, {"0", "1", trained}});
  CHECK(said_of_steps({b.train, b.train, b.evaluate}, b.model) == said{7738, {"2", "1", trained}});
  CHECK(said_of_steps({b.train, b.evaluate, b.evaluate}, b.model) == said{7737, {"2"}});
  CHECK(said_of_steps({b.train, b.evaluate}, still) == said{7738, {"1", "0", none}});
  CHECK(said_of_steps({b.evaluate}, still) == said{});
  CHECK(said_of_steps({b.train, b.evaluate}, {}) == said{});  // a file without a model
  CHECK(said_of_steps({b.evaluate}, {}) == said{});
  b.train.step = "warm up";
  CHECK(said_of_steps({b.train, b.evaluate}, b.model) == said{7736, {"warm up"}});
}

TEST_CASE("evaluation reads what training leaves: the bytes, the type, the parameter, the rank") {
  const both sound(small_llama(), target::host, dtype::f32);
  const auto differs = [&](const std::function<void(kept_state&)>& change) {
    both b = sound;
    change(b.evaluate);
    const said why = said_of_steps({b.train, b.evaluate}, b.model);
    CHECK(why.id == 7741);
    REQUIRE(why.arguments.size() == 5);
    CHECK(why.arguments[0] == "0");
    CHECK(why.arguments[1] == "train");
    CHECK(why.arguments[3] == "evaluate");
    CHECK(why.arguments[2] != why.arguments[4]);
  };
  for (const holding_kind kind : {holding_kind::weight, holding_kind::first_moment,
                                  holding_kind::second_moment, holding_kind::rotary}) {
    CAPTURE(static_cast<int>(kind));
    differs([&](kept_state& s) { find(s, kind).at.begin += 4; });
    differs([&](kept_state& s) { find(s, kind).at.end -= 4; });
    differs([&](kept_state& s) { find(s, kind).at.type = element_type::i32; });
    differs([&](kept_state& s) {
      std::vector<kept_tensor>& all = s.ranks[0].tensors;
      all.erase(all.begin() + (&find(s, kind) - all.data()));
    });
  }
  differs([](kept_state& s) {
    std::swap(find(s, holding_kind::weight, "layers.0.wq").what,
              find(s, holding_kind::weight, "layers.1.wq").what);
  });
  differs([](kept_state& s) { find(s, holding_kind::weight, "layers.0.wq").what.box[0].first += 1; });
  differs([](kept_state& s) { find(s, holding_kind::rotary).what.theta *= 2; });
  both b = sound;
  std::swap(b.evaluate.ranks[0], b.evaluate.ranks[1]);
  CHECK(said_of_steps({b.train, b.evaluate}, b.model) == said{7740, {"0", "train", "1", "evaluate"}});
  b = sound;
  b.evaluate.ranks.pop_back();
  CHECK(said_of_steps({b.train, b.evaluate}, b.model) == said{7739, {"train", "4", "evaluate", "3"}});
}

TEST_CASE("whether a step trains follows from its name and the model, not from what it does") {
  program_by_hand x = two_ranks_by_hand();
  x.p.step = "warm up";
  CHECK(why(x) == placed{"", {7730, {"warm up"}}});
  x.p.step = "train";
  CHECK(placed_of(reason(x, frozen(model_by_hand()))) == placed{"", {7731, {"1"}}});
  x.p.step = "evaluate";
  CHECK(why(x) == placed{"rank 0, end", {7470, {"the weight of table", "table after the update", "table"}}});
  // A step without computation, which keeps the moments or drops them.
  for (const bool with_moments : {true, false}) {
    x = two_ranks_by_hand();
    for (int r = 0; r < 2; ++r) {
      std::vector<op>& ops = x.p.ranks[static_cast<std::size_t>(r)].ops;
      op begin = ops.front(), end = ops.back();
      const std::size_t kept = with_moments ? 3 : 1;
      begin.writes.resize(kept);
      begin.holds.resize(kept);
      end.reads.assign(begin.writes.begin(), begin.writes.end());
      end.holds = begin.holds;
      ops = {begin, end};
      x.order.position[static_cast<std::size_t>(r)] = {0, 1};
    }
    CHECK(why(x) ==
          placed{"rank 0, end", {7470, {"the weight of table", "table", "table after the update"}}});
  }
}

TEST_CASE("padding is zeros, and a rotary table the table, when a step ends") {
  for (const holding& h : {padding, table}) {
    const bool pads = h.kind == holding_kind::padding;
    program_by_hand x = with(h);
    CHECK(reason(x, model_by_hand()) == "");
    overwrite(x, false);
    const said left =
        pads ? said{7734, {"16384", "16408", "table after the update"}}
             : said{7470,
                    {"the rotary", "table after the update", "a value that does not occur in the model"}};
    CHECK(why(x) == placed{"rank 0, end", left});
    x = with(h);
    overwrite(x, true);
    CHECK((reason(x, model_by_hand()) == "") == pads);
    x = with(h);  // rank 0 does not end with it
    x.p.ranks[0].ops.back().reads.pop_back();
    x.p.ranks[0].ops.back().holds.pop_back();
    CHECK(why(x) == placed{"", {7628, {"0", pads ? "padding" : "rotary"}}});
    x = with(h);  // two tensors at the same address
    x.p.ranks[0].ops.front().writes.push_back(x.p.ranks[0].ops.front().writes.back());
    x.p.ranks[0].ops.front().holds.push_back(h);
    CHECK(why(x) == placed{"rank 0, begin", {7732, {pads ? "the padding" : "the rotary", "16384"}}});
  }
  program_by_hand x = with(table);
  x.p.ranks[0].ops.back().holds.back().theta *= 2;
  CHECK(why(x).what.id == 7467);
}

TEST_CASE("what a step leaves is of the type that it begins with") {
  program_by_hand x = two_ranks_by_hand();
  op& begin = find(x, 0, "begin");
  access& weight = begin.writes[0];
  for (op& o : x.p.ranks[0].ops)  // f32 before the update, which writes f64
    for (access& a : o.reads)
      if (a.value == weight.value) a.type = element_type::f32;
  weight.type = element_type::f32;
  CHECK(why(x).what.id != 0);
  x = with(padding);
  overwrite(x, true);
  op& more = x.p.ranks[0].ops[x.p.ranks[0].ops.size() - 2];
  more.writes[0].type = last_read(x).type = element_type::f32;
  more.views[0].shape = {{2 * words}, 1};
  CHECK(why(x) == placed{"rank 0, end", {7733, {"the padding", "f32", "f64"}}});
}

}  // namespace steps_test
