// SPDX-License-Identifier: Apache-2.0
// Optimizers in programs: regions, their bytes, and claims. A program that keeps less state, or other state,
// is refused.
#include <doctest/doctest.h>

#include <rankc/codegen/certificate.hpp>
#include <rankc/codegen/equivalence.hpp>
#include <rankc/codegen/lowered.hpp>
#include <rankc/codegen/prove.hpp>
#include <rankc/codegen/update_rows.hpp>
#include <rankc/codegen/verify.hpp>
#include <rankc/contract/device_memory.hpp>

#include <emit/emit.hpp>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <tuple>

#include "../families/check_lowered.hpp"
#include "../said.hpp"
#include "../some_of.hpp"
#include "plans.hpp"

namespace lowering_test {

using namespace rankc::codegen;
using rankc::test::said, rankc::test::said_in;

namespace {

const std::vector<optimizing::variant>& all() {
  static const std::vector<optimizing::variant> plans = optimizing::plans();
  return plans;
}
const rankc::plan_data& find(const std::string& optimizer, const std::string& layout = "one") {
  for (const optimizing::variant& v : all())
    if (v.optimizer == optimizer && v.layout == layout) return v.plan;
  throw std::logic_error("no plan of " + optimizer);
}
bool has(const std::vector<std::string>& sentences, const std::string& part) {
  return std::any_of(sentences.begin(), sentences.end(),
                     [&](const std::string& s) { return s.find(part) != s.npos; });
}

/// A training program and its model, to be changed.
struct subject {
  explicit subject(const rankc::plan_data& plan, dtype type = dtype::f64, target to = target::host)
      : of(expand_train(lower(plan, type, to))), order(prove(of)), model(specify(plan)) {}
  rankc::codegen::program of;
  verdict order;  // proven before the change
  specification model;

  op& update() {
    for (op& o : of.ranks[0].ops)
      if (is_update(o)) return o;
    throw std::logic_error("no update");
  }
  view& port(std::string_view name, bool written, int skip = 0) {
    for (view& v : update().views)
      if (v.port == name && v.written == written && skip-- == 0) return v;
    throw std::logic_error("no such port");
  }
  /// The reason why it is refused; empty if it is accepted.
  std::string reason() const {
    const equivalence e = check_equivalence(of, order, model);
    return e.holds ? "" : e.reasons.front();
  }
};

}  // namespace

TEST_CASE(
    "programs of every optimizer are proven, are the model, and take what is counted, on either target") {
  int programs = 0;
  std::size_t n = 0;
  std::vector<optimizing::variant> plans = optimizing::plans_with_frozen_parameters();
  std::erase_if(plans, [](const optimizing::variant& v) { return v.layout.starts_with("llama"); });
  plans.insert(plans.end(), all().begin(), all().end());
  for (const optimizing::variant& v : plans)
    for (const auto& [to, type] : {std::pair(target::host, dtype::f64),
                                   {target::host, dtype::f32},
                                   {target::cuda, dtype::f32},
                                   {target::cuda, dtype::bf16}}) {
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
  CHECK(programs == 2 * rankc::test::some_of(4 * static_cast<int>(plans.size())));
}

TEST_CASE("a rank has memory for what its optimizer keeps, and for no more") {
  const auto bytes = [](const char* optimizer, dtype type, target to) {
    const lowered l = lower(find(optimizer), type, to);
    return std::pair(l.ranks[0].arena.bytes, l.ranks[0].parameter_elements);
  };
  const auto up = [](std::size_t n) { return (n + 255) / 256 * 256; };
  const auto [adamw, n] = bytes("adamw", dtype::bf16, target::cuda);
  CHECK(adamw - bytes("sgd", dtype::bf16, target::cuda).first == up(4 * n));
  CHECK(adamw - bytes("sgd_plain", dtype::bf16, target::cuda).first == 2 * up(4 * n));
  CHECK(adamw - bytes("adamw_bf16", dtype::bf16, target::cuda).first == 2 * (up(4 * n) - up(2 * n)));
  CHECK(adamw - bytes("no_master", dtype::bf16, target::cuda).first == up(4 * n));
  CHECK(adamw - bytes("no_master_bf16", dtype::bf16, target::cuda).first ==
        2 * (up(4 * n) - up(2 * n)) + up(4 * n));
  CHECK(bytes("adamw", dtype::f64, target::host).first -
            bytes("adamw_bf16", dtype::f64, target::host).first ==
        2 * (up(8 * n) - up(2 * n)));
  CHECK(bytes("adamw", dtype::f64, target::host).first == bytes("no_master", dtype::f64, target::host).first);
}

TEST_CASE("a plan's description and its claims say what is kept and how") {
  const auto text = [](const char* optimizer, dtype type, target to) {
    return describe_text(lower(find(optimizer), type, to));
  };
  const auto says = [](const std::string& all_of, const char* part) {
    return all_of.find(part) != all_of.npos;
  };
  CHECK(says(text("sgd_nesterov", dtype::f64, target::host), "optimizer: SGD, momentum 0.8, Nesterov\n"));
  CHECK(says(text("sgd_nesterov", dtype::f64, target::host), "x 3 (weights, gradients, momentum)\n"));
  CHECK(says(text("sgd_plain", dtype::f64, target::host), "x 2 (weights, gradients)\n"));
  CHECK(says(text("adamw_stochastic", dtype::f64, target::host),
             "optimizer: AdamW; moments in bf16, rounded stochastically\n"));
  CHECK(says(text("adamw_bf16", dtype::f64, target::host), "x 2 (bf16 two moments)"));
  CHECK(says(text("no_master_bf16", dtype::bf16, target::cuda),
             "optimizer: AdamW; weights and moments in bf16, rounded stochastically\n"));
  CHECK(says(text("no_master", dtype::bf16, target::cuda), "(bf16 weights, no master copy)"));
  CHECK(says(text("no_master", dtype::f64, target::host), "x 4 (weights, gradients, two moments)\n"));
  CHECK(says(text("lion", dtype::f64, target::host), "optimizer: Lion\n"));
  CHECK(says(text("lion", dtype::f64, target::host), "x 3 (weights, gradients, momentum)\n"));
  CHECK(says(text("adagrad", dtype::f64, target::host), "optimizer: Adagrad, lr_decay 0.25\n"));

  const auto claims = [](const char* optimizer, dtype type, target to) {
    const subject s(find(optimizer), type, to);
    return check_equivalence(s.of, s.order, s.model).claims;
  };
  CHECK(has(claims("sgd", dtype::f64, target::host), "and of their moments is updated by sgd"));
  CHECK(has(claims("lion", dtype::f64, target::host), "and of their moments is updated by lion"));
  CHECK(has(claims("sgd_plain", dtype::f64, target::host), "these sums and weights are kept in f32 or f64"));
  CHECK(has(claims("adamw_bf16", dtype::f64, target::host),
            "moments are kept in bf16 alone, as the recipe says"));
  CHECK(has(claims("no_master", dtype::bf16, target::cuda), "these sums and moments are kept in f32 or f64"));
  CHECK(
      has(claims("no_master_bf16", dtype::bf16, target::cuda), "weights and moments are kept in bf16 alone"));
  CHECK(
      !has(claims("no_master_bf16", dtype::f64, target::host), "weights and moments are kept in bf16 alone"));
}

TEST_CASE("gradients go over dp in bf16 where the recipe says so, and no other sum does") {
  const auto sums = [](const char* layout, target to, dtype type) {
    const subject s(find("adamw_reduced", layout), type, to);
    std::map<std::string, int> in_bf16, as_they_are;
    for (const op& o : s.of.ranks[0].ops)
      if (o.kind == op_kind::collective && o.does != collective_kind::all_gather)
        ++(o.in_bf16 ? in_bf16
                     : as_they_are)[s.of.communicators[static_cast<std::size_t>(o.communicator)].name];
    CHECK(s.reason() == "");
    const std::vector<std::string> claims = check_equivalence(s.of, s.order, s.model).claims;
    CHECK(has(claims, "gradients go between ranks in bf16, as the recipe says") == !in_bf16.empty());
    return std::pair(in_bf16, as_they_are);
  };
  using counts = std::map<std::string, int>;
  const auto [replicas, loss_and_norm] = sums("dp2", target::cuda, dtype::bf16);
  CHECK((replicas ==
         counts{{"dp at pp 0 tp 0",
                 5}}));  // head, two blocks, position table, and the table that head and embedding share
  CHECK((loss_and_norm == counts{{"dp at pp 0 tp 0", 1}}));
  CHECK(sums("dp2", target::host, dtype::f32).first.empty());
  CHECK(sums("tp2", target::cuda, dtype::bf16).first.empty());
  const auto [hybrid, others] = sums("hsdp", target::cuda, dtype::bf16);
  CHECK(hybrid.size() == 2);
  CHECK(others.size() == 2);  // the loss over both axes, the norm over shards

  const auto text = [](const char* optimizer) {
    return describe_text(lower(find(optimizer, "shard2"), dtype::bf16, target::cuda));
  };
  const auto dealt = [](const std::string& all) {
    const std::size_t at = all.find("reduce_scatter dp_shard");
    REQUIRE(at != all.npos);
    return all.substr(at, all.find('\n', at) - at);
  };
  CHECK(text("adamw_reduced").find("optimizer: AdamW; gradients in bf16 between ranks of dp\n") !=
        std::string::npos);
  CHECK(dealt(text("adamw_reduced")).find(" bf16 ") != std::string::npos);
  CHECK(dealt(text("no_master")).find(" f32 ") != std::string::npos);
  const rankc::plan_data &narrow = find("adamw_reduced", "dp2"), &wide = find("no_master", "dp2");
  CHECK(bytes_beside_arena(lower(narrow, dtype::bf16, target::cuda),
                           lower(narrow, dtype::bf16, target::cuda).ranks[0]) -
            bytes_beside_arena(lower(wide, dtype::bf16, target::cuda),
                               lower(wide, dtype::bf16, target::cuda).ranks[0]) ==
        rankc::cuda::rounded_bytes);
}

TEST_CASE("a sum that is sent in bf16 without the recipe's word, or of the loss, is refused") {
  const auto first = [](subject& s, bool in_bf16) -> std::vector<op*> {
    std::vector<op*> members;
    for (auto& rank : s.of.ranks)
      for (op& o : rank.ops)
        if (o.kind == op_kind::collective && o.in_bf16 == in_bf16 &&
            (members.empty() || o.name == members[0]->name)) {
          members.push_back(&o);
          break;
        }
    return members;
  };
  subject unsaid(find("adamw_reduced", "dp2"), dtype::bf16, target::cuda);
  unsaid.model = specify(find("adamw", "one"));
  CHECK(said_in(unsaid.reason()) == said{7522, {}});
  subject loss(find("adamw_reduced", "dp2"), dtype::bf16, target::cuda);
  for (op* o : first(loss, false)) o->in_bf16 = true;
  CHECK(said_in(loss.reason()) == said{7524, {}});
  subject one(find("adamw_reduced", "dp2"), dtype::bf16, target::cuda);  // one of the two members
  first(one, true)[0]->in_bf16 = false;
  CHECK(!prove(one.of).ok);
  CHECK(said_in(one.reason()) == said{7515, {}});
  const subject plain(find("adamw_reduced", "dp2"), dtype::bf16, target::cuda);
  std::string text = certificate({{plain.of, plain.order}}, plain.model);
  CHECK(verify(text) == "");
  text.replace(text.find("\"in_bf16\":true"), 14, "\"in_bf16\":1");
  const rankc::test::said said = rankc::test::said_in(verify(text));
  REQUIRE_MESSAGE(said.id == 7106, verify(text));
  CHECK(said.arguments[0].ends_with("\": in_bf16"));
  CHECK(said.arguments[1] == "1");
}

TEST_CASE("a program whose optimizer keeps less, or something else, is refused") {
  {
    subject s(find("sgd"));
    CHECK(s.reason() == "");
    std::swap(s.port("weight", false).accesses, s.port("first_moment", false).accesses);
    CHECK(said_in(s.reason()) == said{7475, {"a value that does not occur in the model"}});
  }
  {
    subject s(find("sgd"));  // the moment of another parameter with the same size
    std::map<std::int64_t, std::vector<view*>> moments;
    for (view& v : s.update().views)
      if (v.port == "first_moment" && !v.written) moments[v.shape[0]].push_back(&v);
    const auto twins =
        std::find_if(moments.begin(), moments.end(), [](const auto& m) { return m.second.size() > 1; });
    REQUIRE(twins != moments.end());
    std::swap(twins->second[0]->accesses, twins->second[1]->accesses);
    CHECK(said_in(s.reason()).id == 7477);
  }
  {
    subject s(find("sgd"));  // weight decay is left out for one weight
    s.port("weight", false).port = "undecayed_weight";
    CHECK(said_in(s.reason()).id == 7481);
  }
  {
    subject s(find("sgd"));  // the end holds the momentum with which the step began
    const op& begin = s.of.ranks[0].ops.front();
    op& end = s.of.ranks[0].ops.back();
    for (std::size_t i = 0; i < end.holds.size(); ++i)
      if (end.holds[i].kind == holding_kind::first_moment) {
        for (std::size_t k = 0; k < begin.holds.size(); ++k)
          if (begin.holds[k].kind == holding_kind::first_moment && begin.holds[k].name == end.holds[i].name)
            end.reads[i].value = begin.writes[k].value;
        break;
      }
    const std::string other = "a value that does not occur in the model";
    CHECK(said_in(s.reason()) == said{7470, {"the first moment of wpe", other, other}});
  }
  {
    subject s(find("sgd"));  // or the momentum is not held at all
    op& end = s.of.ranks[0].ops.back();
    const auto at = std::find_if(end.holds.begin(), end.holds.end(),
                                 [](const holding& h) { return h.kind == holding_kind::first_moment; });
    end.reads.erase(end.reads.begin() + (at - end.holds.begin()));
    end.holds.erase(at);
    CHECK(said_in(s.reason()) == said{7628, {"0", "first moment"}});
  }
  for (const auto& [other, why] : {std::pair("sgd_plain", said{7611, {"weight"}}),
                                   {"adamw", said{7614, {"sgd", "adamw"}}},
                                   {"lion", said{7614, {"sgd", "lion"}}}}) {
    subject s(find("sgd"));  // the model of a plan with another optimizer
    s.model = specify(find(other));
    CHECK(said_in(s.reason()) == why);
  }
  {
    subject s(find("lion"));  // the model of a plan with another optimizer
    s.model = specify(find("sgd"));
    CHECK(said_in(s.reason()) == said{7614, {"lion", "sgd"}});
  }
  for (const char* name : {"gelu", "sum_squares", ""}) {
    subject s(find("lion"));  // the row has the name of an op
    s.model.optimizer.row = s.update().row = name;
    CHECK(said_in(s.reason()) == said{7743, {name}});
  }
  {
    subject s(find("sgd_plain"));  // the model has momentum, the program does not
    s.model = specify(find("sgd"));
    CHECK(said_in(s.reason()) == said{7611, {"first_moment"}});
  }
  {
    subject s(find("sgd_plain"));  // the program updates nothing
    op& o = s.update();
    o.row = {};
    o.reads.clear();
    o.writes.clear();
    o.views.clear();
    CHECK(said_in(s.reason()).id == 7546);
  }
}

TEST_CASE(
    "a kernel gets the numbers of a row that has hyperparameters of its own, and no other kernel does") {
  const auto text = [](const char* optimizer) {
    return emit_optimizer(lower(find(optimizer), dtype::f64, target::host));
  };
  CHECK(
      text("adagrad") ==
      "template <std::size_t Count>\n"
      "struct adagrad {\n"
      "  static constexpr double numbers[]{0.25, 1e-06};  // lr_decay, eps\n"
      "  vector<wide, Count> weights, gradients, squares;\n"
      "  vector<wide, 1> norm;\n"
      "  std::span<const range> of;\n"
      "  void operator()(const lane& on) const {\n"
      "    user::adagrad<real>(on, weights.where, gradients.where, squares.where, norm.where, of, numbers);\n"
      "  }\n"
      "};");
  for (const char* other : {"adamw", "sgd", "lion"}) CHECK(text(other).find("numbers") == std::string::npos);
}

TEST_CASE("describe --json has the hyperparameters of a row that has its own, and no others") {
  const auto json = [](const char* optimizer) {
    return describe_json(lower(find(optimizer), dtype::f64, target::host));
  };
  const std::string own = R"("optimizer":{"hyperparameters":{"eps":1e-06,"lr_decay":0.25},)";
  CHECK(json("adagrad").find(own) != std::string::npos);
  CHECK(json("adagrad").find(R"("name":"adagrad")") != std::string::npos);
  for (const char* other : {"adamw", "sgd", "lion"})
    CHECK(json(other).find("hyperparameters") == std::string::npos);
}

TEST_CASE("what is in bf16 without the recipe's word is refused") {
  for (const auto& [kept, given, type, to] :
       {std::tuple("adamw_bf16", "the first moment of wpe", dtype::f64, target::host),
        std::tuple("no_master", "the weight of wpe", dtype::bf16, target::cuda)}) {
    subject s(find(kept), type, to);
    CHECK(s.reason() == "");
    s.model = specify(find("adamw"));
    CHECK(said_in(s.reason()) == said{7704, {given, "bf16"}});
  }
}

TEST_CASE("certificates of every optimizer say which it is, and are read again") {
  for (const char* optimizer : {"adamw", "sgd", "sgd_plain", "adamw_stochastic", "lion", "adagrad"}) {
    CAPTURE(optimizer);
    const subject s(find(optimizer, "shard4"));
    std::string text = certificate({{s.of, s.order}}, s.model);
    CHECK(verify(text) == "");
    const std::string own = "\"optimizer\":[\"" + s.model.optimizer.row;
    REQUIRE(text.find(own) != std::string::npos);
    const std::size_t at = text.find("\"optimizer\":[");
    text.replace(at, text.find(']', at) - at, "\"optimizer\":[\"sgd\",2,false,false,false");
    CHECK(rankc::test::said_in(verify(text)) ==
          rankc::test::said{
              7110, {"the model: optimizer", "2 moments with adamw, 0 or 1 with sgd, 0 to 2 with another"}});
  }
}

TEST_CASE("the checks know the optimizers of the language, with as many moments") {
  REQUIRE(std::size(update_rows) == std::size(rankc::optimizer_rows));
  for (const rankc::optimizer_row* row : rankc::optimizer_rows) {
    CAPTURE(row->name);
    const update_row* const known = find_update_row(row->name);
    REQUIRE(known);
    const int moments = static_cast<int>(row->used_moments().size());
    CHECK(known->most_moments == moments);
    CHECK(known->least_moments == (row->moments_need.empty() ? moments : 0));
  }
}

}  // namespace lowering_test
