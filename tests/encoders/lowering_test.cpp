// SPDX-License-Identifier: Apache-2.0
// Programs of encoders, lowered: their memory, their certificates, and programs that compute another
// attention, another mean or another loss.
#include <doctest/doctest.h>
#include <emit/emit.hpp>
#include <nlohmann/json.hpp>

#include <rankc/codegen/certificate.hpp>
#include <rankc/codegen/equivalence.hpp>
#include <rankc/codegen/lowered.hpp>
#include <rankc/codegen/verify.hpp>
#include <rankc/rankc.hpp>

#include <algorithm>

#include "../families/check_lowered.hpp"
#include "../said.hpp"
#include "plans.hpp"

namespace encoders_lowering_test {

using namespace rankc::codegen;

namespace {

bool is_model(const certified& c) {
  return check_equivalence(c.steps.at(0).program, c.steps[0].verdict, c.model).holds;
}

/// True if a program still matches the model after `change` of the first op whose row begins with a name, on
/// each rank that has such an op. The change must apply to some rank.
bool holds_after(const std::string& text, const std::string& row, auto change) {
  certified c = read_certificate(text);
  int changed = 0;
  for (rank_program& rank : c.steps.at(0).program.ranks)
    for (op& o : rank.ops)
      if (std::string_view(o.row).starts_with(row)) {
        change(o);
        ++changed;
        break;
      }
  REQUIRE(changed > 0);
  return is_model(c);
}

/// The row name of forward attention in this layout.
std::string attention_of(const std::string& text) {
  for (const char* row : {"ring_attention", "chunk_attention"})
    if (text.find(row) != text.npos) return row;
  return "attention";
}

}  // namespace

TEST_CASE("certificates of encoders are accepted; another mask, mean, label or loss is refused") {
  int programs = 0;
  for (const split_plan& p : encoders::plans()) {
    CAPTURE(p.job);
    CAPTURE(p.layout);
    const lowered l = lower(p.plan, dtype::f64, target::host);
    check_arenas(l);
    for (const program& q : {expand_train(l), expand_evaluate(l)}) {
      const std::string text = certificate({{q, prove(q)}}, specify(p.plan));
      CHECK(verify(text) == "");
      CHECK(is_model(read_certificate(text)));
      CHECK(!holds_after(text, attention_of(text), [](op& o) {
        o.attention.causal = true;
        o.given.resize(o.given.size() - 4);
      }));
      CHECK(!holds_after(text, "sequence_mean", [](op& o) { o.given.back() = o.seq *= 2; }));
      CHECK(!holds_after(text, p.job == "vit" ? "cross_entropy" : "squared_error", [](op& o) {
        o.number *= 2;
        o.given.back() = o.number;
      }));
      certified moved = read_certificate(text);
      for (rank_program& rank : moved.steps.at(0).program.ranks)
        for (holding& h : rank.ops.front().holds)
          if (h.name == (p.job == "vit" ? "labels" : "target_values")) h.box[0].first += 1;
      CHECK(!is_model(moved));
      ++programs;
    }
  }
  CHECK(programs == 60);
}

TEST_CASE(
    "each rank that computes a part of the loss leaves the loss, where labels are a declared input too") {
  const rankc::plan_data plan = find_plan(encoders::plans(), "vit", "dp2");
  const lowered l = lower(plan, dtype::f64, target::host);
  for (program q : {expand_train(l), expand_evaluate(l)}) {
    op& end = q.ranks[1].ops.back();
    const auto loss = std::find_if(end.holds.begin(), end.holds.end(),
                                   [](const auto& h) { return h.kind == holding_kind::loss; });
    REQUIRE(loss != end.holds.end());
    end.reads.erase(end.reads.begin() + (loss - end.holds.begin()));
    end.holds.erase(loss);
    const equivalence found = check_equivalence(q, prove(q), specify(plan));
    REQUIRE(found.reasons.size() == 1);
    CHECK(rankc::test::said_in(found.reasons[0]) == rankc::test::said{7789, {"1"}});
  }
}

TEST_CASE("a model declares each input once") {
  const rankc::plan_data plan = find_plan(encoders::plans(), "vit", "one");
  const program q = expand_evaluate(lower(plan, dtype::f64, target::host));
  specification model = specify(plan);
  model.inputs.push_back(model.inputs.back());
  const equivalence found = check_equivalence(q, prove(q), model);
  REQUIRE(found.reasons.size() == 1);
  CHECK(rankc::test::said_in(found.reasons[0]) == rankc::test::said{7790, {"labels"}});
}

TEST_CASE("a program of causal attention is not that of a model of full attention") {
  const rankc::plan_data plan = find_plan(encoders::plans(), "vit", "one");
  rankc::plan_data causal = plan;
  for (rankc::trace* each : {&causal.kinds[1].ops, &causal.on_one_device[1]})
    for (rankc::op& o : each->ops) o.with.attention.causal = true;
  const program q = expand_train(lower(causal, dtype::f64, target::host));
  CHECK(is_model(read_certificate(certificate({{q, prove(q)}}, specify(causal)))));
  CHECK(!is_model(read_certificate(certificate({{q, prove(q)}}, specify(plan)))));
}

TEST_CASE("programs for GPUs are the model, in f32 and in bf16") {
  int programs = 0;
  for (const split_plan& p : encoders::plans())
    for (const dtype type : {dtype::f32, dtype::bf16}) {
      if (p.layout != "one" && p.layout != "tp2pp2" && p.layout != "cp2tp2" && p.layout != "ring2") continue;
      CAPTURE(p.job);
      CAPTURE(p.layout);
      const program q = expand_train(lower(p.plan, type, target::cuda));
      CHECK(is_model(read_certificate(certificate({{q, prove(q)}}, specify(p.plan)))));
      ++programs;
    }
  CHECK(programs == 16);
}

TEST_CASE("describe lists the declared inputs") {
  const rankc::plan_data plan = find_plan(encoders::plans(), "vit", "one");
  const lowered l = lower(plan, dtype::f64, target::host);
  CHECK(describe_text(l).find("inputs: patches, 6 numbers of each token; labels, an index below 12 of each "
                              "sequence\n") != std::string::npos);
  const nlohmann::json inputs = nlohmann::json::parse(describe_json(l)).at("inputs");
  CHECK(inputs.at(0).at("row_for_each") == "token");
  CHECK(inputs.at(1).at("row_for_each") == "sequence");
  CHECK(inputs.at(1).at("below") == 12);
}

TEST_CASE("dense features are refused with sequence parallelism, by one sentence") {
  const rankc::plan_data p = encoders::plan_with_sequence_parallelism();
  REQUIRE(p.diagnostics.size() == 1);
  CHECK(p.diagnostics[0].id == 210);
  CHECK(p.diagnostics[0].text.view().ends_with("leave sequence_parallel out"));
}

}  // namespace encoders_lowering_test
