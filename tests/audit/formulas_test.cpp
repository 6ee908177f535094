// SPDX-License-Identifier: Apache-2.0
// The communication that describe reports for a step equals the formulas.
#include <doctest/doctest.h>

#include "expected.hpp"
#include "layers.hpp"

#include "codegen/emit/communications.hpp"
#include "codegen/emit/emit.hpp"

#include <rankc/plan/make_plan.hpp>
#include <rankc/rankc.hpp>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

using namespace audit;
namespace codegen = rankc::codegen;

namespace {

const std::vector<formula>& rows() {
  static const std::vector<formula> all = read_formulas(RANKC_COLLECTIVES "/formulas.csv");
  return all;
}

}  // namespace

TEST_CASE("describe's table of drawn plans is the formulas', in two types and for both targets") {
  const std::vector<drawn> plans = draw_legal(1, 440, "audit_");
  std::map<std::string, int> seen;
  for (const drawn& d : plans) {
    CAPTURE(d.plan.name);
    const auto& dims = d.plan.dims;
    for (const auto& [what, is] :
         {std::pair("dp_replicate", dims.dp_replicate > 1),
          {"dp_shard", dims.dp_shard > 1},
          {"cp", dims.cp > 1},
          {"heads exchanged", dims.ulysses > 1},
          {"rings", rankc::ring_ranks(dims) > 1},
          {"rings of groups", dims.ulysses > 1 && rankc::ring_ranks(dims) > 1},
          {"weights on each rank of cp", dims.cp > 1 && dims.cp_weights == rankc::cp_weights::replicate},
          {"experts", d.model.experts > 0},
          {"ep", dims.ep > 1},
          {"etp", dims.ep > 1 && dims.etp > 1},
          {"shards of a rank's experts", dims.ep > 1 && rankc::expert_weight_shards(dims) > 1},
          {"experts over replicas", rankc::spreads_experts_over_replicas(dims)},
          {"experts on an axis of their own", rankc::repeats_tokens(dims)},
          {"experts across ranks of tp", dims.ep > 1 && dims.ep * dims.etp % dims.tp != 0},
          {"shards of experts alone", rankc::shards_weights(dims) && weight_shards(dims) == 1},
          {"tp", dims.tp > 1},
          {"pp", dims.pp > 1},
          {"sequence parallel", dims.sequence_parallel},
          {"recompute", d.plan.recipe.recompute.any()},
          {"after_layer", rankc::reshards_after_layer(dims)},
          {"after_stage", dims.dp_shard > 1 && dims.reshard == rankc::reshard::after_stage},
          {"gathered further ahead", rankc::reshards_after_layer(dims) && dims.prefetch > 1},
          {"both ways", d.plan.actions.bidirectional()}})
      seen[what] += is;
    for (const auto& [to, type, names] :
         {std::tuple(codegen::target::host, codegen::dtype::f64, number_types{"f64", "f64"}),
          {codegen::target::cuda, codegen::dtype::bf16, number_types{"bf16", "f32"}}}) {
      const codegen::lowered l = codegen::lower(d.plan, type, to);
      const std::string json = codegen::describe_json(l);
      for (int pp = 0; pp < dims.pp; ++pp) {
        CAPTURE(pp);
        CHECK(difference(described(json, pp), expected(d, pp, rows(), names)) == "");
      }
    }
  }
  for (const auto& [what, n] : seen) {
    CAPTURE(what);
    CHECK(n >= (what == "both ways" ? 3 : 15));
    MESSAGE(what << ": " << n << " plans of " << plans.size());
  }
}

TEST_CASE("a communication that is issued twice, or not at all, makes another account") {
  int doubled = 0, dropped = 0;
  for (const drawn& d : draw_legal(3, 20, "audit_"))
    for (const bool twice : {true, false}) {
      CAPTURE(d.plan.name);
      CAPTURE(twice);
      codegen::lowered l = codegen::lower(d.plan, codegen::dtype::f64);
      const account right = expected(d, 0, rows(), {"f64", "f64"});
      std::vector<codegen::item>& items = l.ranks[0].train.items;
      for (std::size_t i = 0; i < items.size(); ++i) {
        using enum codegen::item_kind;
        const codegen::item one = items[i];
        const auto is = [&](std::initializer_list<codegen::item_kind> any) {
          return std::find(any.begin(), any.end(), one.what) != any.end();
        };
        if (!is({send, reduce, reduce_norm, reduce_loss}) &&
            !(twice && is({receive, gather, reduce_scatter})))
          continue;  // another item makes what is read here
        const auto at = items.begin() + static_cast<std::ptrdiff_t>(i);
        CAPTURE(one.name);
        twice ? items.insert(at, one) : items.erase(at);
        CHECK(difference(described(codegen::describe_json(l), 0), right) != "");
        twice ? items.erase(items.begin() + static_cast<std::ptrdiff_t>(i))
              : items.insert(items.begin() + static_cast<std::ptrdiff_t>(i), one);
        ++(twice ? doubled : dropped);
      }
      CHECK(difference(described(codegen::describe_json(l), 0), right) == "");
    }
  CHECK(doubled > 200);
  CHECK(dropped > 100);
  MESSAGE(doubled << " issued twice, " << dropped << " not at all");
}

TEST_CASE("what sharding costs a rank is what its weights are, and what the table says that they send") {
  int plans = 0;
  for (const drawn& d : draw_legal(9, 120, "audit_")) {
    const auto& dims = d.plan.dims;
    if (!rankc::shards_weights(dims)) continue;
    CAPTURE(d.plan.name);
    const codegen::lowered l = codegen::lower(d.plan, codegen::dtype::f64);
    const auto j = nlohmann::json::parse(codegen::describe_json(l));
    const std::int64_t bytes = 8;
    for (int pp = 0; pp < dims.pp; ++pp) {
      CAPTURE(pp);
      std::int64_t whole = 0;
      fraction as_replicas, once;
      bool has_table = false;
      for (const layer& of : layers_of(d, pp))
        for (const tensor& w : of.tensors) {
          if (w.is_shared && std::exchange(has_table, true)) continue;
          const int shards = w.is_spread ? rankc::expert_weight_shards(dims) : weight_shards(dims);
          const std::int64_t ranks =
              w.is_spread ? dims.world / (dims.pp * dims.ep * dims.etp) : shards * weight_replicas(dims);
          whole += w.rows * w.cols;
          as_replicas = as_replicas + fraction(2 * (ranks - 1) * bytes * w.rows * w.cols, ranks);
          once = once + fraction(2 * (shards - 1) * bytes * w.shard_rows(shards) * w.cols);
        }
      fraction over_shards, over_replicas;
      for (const auto& [what, e] : described(j.dump(), pp))
        if (what.phase != "step") {
          if (what.axis == "dp_shard" || what.axis == "efsdp") over_shards = over_shards + e.sent;
          if (what.axis == "dp_replicate") over_replicas = over_replicas + e.sent;
        }
      const auto value = [](const fraction& f) {
        return doctest::Approx(static_cast<double>(f.over) / static_cast<double>(f.under)).epsilon(1e-12);
      };
      const auto& costs = j.at("pipeline_ranks").at(static_cast<std::size_t>(pp)).at("sharding");
      CHECK(costs.at("replicas").at("bytes") == 4 * bytes * whole);
      CHECK(costs.at("replicas").at("sent_bytes").get<double>() == value(as_replicas));
      CHECK(costs.at("kept").at("sent_bytes").get<double>() == value(over_shards + over_replicas));
      CHECK(costs.at("gathered_once").at("sent_bytes").get<double>() == value(once + over_replicas));
      if (!rankc::reshards_after_layer(dims) && dims.reshard != rankc::reshard::after_stage)
        CHECK(costs.at("kept").at("sent_bytes") == costs.at("gathered_once").at("sent_bytes"));
      ++plans;
    }
  }
  CHECK(plans > 60);
}

TEST_CASE("what is whole on tp is summed as the formula of norms says, of a Llama without a pipeline") {
  int plans = 0;
  for (const drawn& d : draw_legal(5, 1000, "audit_")) {
    const auto& dims = d.plan.dims;
    if (!d.model.is_llama || !dims.sequence_parallel || dims.pp > 1 || weight_shards(dims) > 1 ||
        d.model.hidden % 16 != 0)
      continue;
    CAPTURE(d.plan.name);
    const variables v{{"t", dims.tp}, {"L", d.model.blocks}, {"h", d.model.hidden}};
    const formula& f = find(rows(), 9);
    const account all = described(codegen::describe_json(codegen::lower(d.plan, codegen::dtype::f64)), 0);
    const entry& e = all.at({"backward", "all_reduce", "tp", "f64"});
    CHECK(e.count == evaluate(f.count, v).over);
    CHECK(e.elements == evaluate(f.elements, v).over);
    CHECK(e.sent == 8 * evaluate(f.sent, v));
    ++plans;
  }
  CHECK(plans >= 5);
}

TEST_CASE("formulas are computed without rounding, and what is none is refused") {
  const variables v{{"t", 3}, {"N", 10}, {"P_l", 7}};
  CHECK(evaluate("2*(t-1)/t*N", v) == fraction(40, 3));
  CHECK(evaluate("N-t-1", v) == fraction(6));
  CHECK(evaluate("P_l/t/2", v) == fraction(7, 6));
  for (const char* wrong : {"", "N*", "(N", "N N", "x+1", ">=1"})
    CHECK_THROWS_AS(evaluate(wrong, v), std::invalid_argument);
}

TEST_CASE("what is frozen costs a rank its weights alone, in shards as in a replica") {
  using namespace rankc;
  constexpr models::gpt2 model{.layers = 2, .hidden = 12, .heads = 2, .ffn = 24, .vocab = 36};
  const plan_data p = make_plan(
      "frozen", model, {.world = 2, .dp_shard = 2}, schedules::gpipe{1},
      training{.seq = 8, .global_batch = 2, .precision = f64, .frozen = {"wte", "w1"}}, clusters::cpu);
  const codegen::lowered l = codegen::lower(p, codegen::dtype::f64);
  const auto costs =
      nlohmann::json::parse(codegen::describe_json(l)).at("pipeline_ranks").at(0).at("sharding");
  std::size_t trained = 0, frozen = 0;
  for (const auto& each : l.ranks[0].parameters) (each.as.trainable ? trained : frozen) += each.as.elements();
  CHECK(frozen == 36 * 12 + 2 * 24 * 12);
  CHECK(costs.at("replicas").at("bytes") == 8 * (4 * trained + frozen));
  CHECK(costs.at("kept").at("bytes") ==
        8 * (4 * l.ranks[0].trained_elements + l.ranks[0].parameter_elements - l.ranks[0].trained_elements +
             l.ranks[0].gathered_elements + l.ranks[0].summed_elements + l.ranks[0].arriving_elements));
}
