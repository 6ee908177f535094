// SPDX-License-Identifier: Apache-2.0
// Programs with fp8 linear layers: their operands, each rounded once; proofs; memory. A program that takes
// another operand, or an unrounded one, is refused.
#include <doctest/doctest.h>

#include <rankc/codegen/certificate.hpp>
#include <rankc/codegen/equivalence.hpp>
#include <rankc/codegen/lowered.hpp>
#include <rankc/codegen/prove.hpp>
#include <rankc/codegen/verify.hpp>
#include <rankc/rankc.hpp>

#include <emit/emit.hpp>

#include <algorithm>
#include <stdexcept>

#include "../families/check_lowered.hpp"
#include "../said.hpp"
#include "plans.hpp"

namespace lowering_test {

using namespace rankc::codegen;
using rankc::codegen::access;  // unistd.h has a function of this name

namespace {

const std::vector<split_plan>& all() {
  static const std::vector<split_plan> plans = narrowing::plans();
  return plans;
}
const rankc::plan_data& find(const std::string& job, const std::string& layout) {
  for (const split_plan& v : all())
    if (v.job == job && v.layout == layout) return v.plan;
  throw std::logic_error("no plan " + job + " " + layout);
}
std::string rows(const nodes& list) {
  std::string names;
  for (const node& n : list) names += (names.empty() ? "" : " ") + std::string(n.row->name);
  return names;
}
int count(const body& b, std::string_view row) {
  int n = 0;
  for (const nodes* list : {&b.forward, &b.backward})
    n += static_cast<int>(
        std::count_if(list->begin(), list->end(), [&](const node& of) { return of.row->name == row; }));
  return n;
}

}  // namespace

TEST_CASE("programs in eight bits are proven, are the model, and take what is counted, on either target") {
  int programs = 0;
  for (const split_plan& v : all())
    for (const auto& [to, type] :
         {std::pair(target::host, dtype::f64), std::pair(target::cuda, dtype::bf16)}) {
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
  CHECK(programs == 152);
}

TEST_CASE("certificates are read again, and say what is rounded") {
  struct text_of_recipe {
    const char *job, *layout, *flag, *other;
  };
  const char *one = ",\"fp8\"]", *rows = ",\"fp8_rows\"]";
  for (const auto& [job, layout, flag, other] :
       {text_of_recipe{"llama_2", "zbv", one, rows}, text_of_recipe{"gpt2_parts", "sp_pp2", one, rows},
        text_of_recipe{"llama_rows_2", "zbv", rows, one}}) {
    const lowered l = lower(find(job, layout), dtype::bf16, target::cuda);
    std::vector<proven> steps;
    for (program& p : std::vector{expand_train(l), expand_evaluate(l)}) {
      const verdict v = prove(p);
      steps.push_back({std::move(p), v});
    }
    const std::string text = certificate(steps, specify(find(job, layout)));
    CHECK(verify(text) == "");
    const auto check = [](const certified& c) {
      return check_equivalence(c.steps.at(0).program, c.steps.at(0).verdict, c.model);
    };
    const equivalence found = check(read_certificate(text));
    CHECK_MESSAGE(found.holds, (found.reasons.empty() ? "" : found.reasons.front()));
    CHECK(std::count(found.claims.begin(), found.claims.end(),
                     "linear layers take operands that are rounded to fp8, as the recipe says") == 1);
    REQUIRE(text.find(flag) != text.npos);
    for (const std::string instead : {",\"none\"]", other}) {
      std::string changed = text;
      for (std::size_t at = changed.find(flag); at != changed.npos; at = changed.find(flag, at))
        changed.replace(at, std::string(flag).size(), instead);
      const equivalence refused = check(read_certificate(changed));
      CHECK_FALSE(refused.holds);
      CHECK(rankc::test::said_in(refused.reasons.at(0)).id == 7559);
    }
  }
}

TEST_CASE(
    "each operand is rounded in front of the first product that takes it; the head's products stay as they "
    "were") {
  const lowered l = lower(find("llama_1", "one"), dtype::bf16, target::cuda);
  const body &block = l.bodies.at(1), &head = l.bodies.at(2);
  CHECK(rows(block.forward) ==
        "rms_norm_e4m3 weight_to_e4m3 linear_fp8 rope attention to_e4m3 weight_to_e4m3 linear_add_fp8 "
        "rms_norm_e4m3 weight_to_e4m3 "
        "linear_fp8 swiglu_e4m3 weight_to_e4m3 linear_add_fp8");
  CHECK(rows(block.backward) ==
        "to_e5m2 weight_to_e4m3 linear_dx_fp8 linear_dw_fp8 swiglu_grad_e5m2 weight_to_e4m3 linear_dx_fp8 "
        "linear_dw_fp8 "
        "rms_norm_grad_add to_e5m2 weight_to_e4m3 linear_dx_fp8 linear_dw_fp8 attention_grad rope_grad "
        "to_e5m2 weight_to_e4m3 "
        "linear_dx_fp8 linear_dw_fp8 rms_norm_grad_add");
  CHECK(rows(head.forward).find("fp8") == std::string::npos);
  CHECK(describe_text(l).find("linears: 4 of 4 products of block in fp8, e4m3 and for gradients e5m2\n") !=
        std::string::npos);
  CHECK(describe_json(l).find("\"fp8\"") != std::string::npos);
  CHECK(describe_text(lower(find("llama_plain", "one"), dtype::bf16, target::cuda)).find("linears") ==
        std::string::npos);
}

TEST_CASE("with a scale for each row all is of e4m3, by kernels of their own") {
  const lowered l = lower(find("llama_rows_1", "one"), dtype::bf16, target::cuda);
  const body& block = l.bodies.at(1);
  CHECK(rows(block.forward) ==
        "rms_norm_e4m3_rows weight_to_e4m3_rows linear_fp8_rows rope attention to_e4m3_rows "
        "weight_to_e4m3_rows linear_add_fp8_rows "
        "rms_norm_e4m3_rows weight_to_e4m3_rows linear_fp8_rows swiglu_e4m3_rows weight_to_e4m3_rows "
        "linear_add_fp8_rows");
  CHECK(rows(block.backward).find("e5m2") == std::string::npos);
  CHECK(count(block, "linear_dw_fp8_rows") == 4);
  CHECK(count(block, "swiglu_grad_e4m3_rows") == 1);
  CHECK(describe_text(l).find(
            "linears: 4 of 4 products of block in fp8_rows, e4m3 with a scale for each row\n") !=
        std::string::npos);
}

TEST_CASE("what is recomputed is rounded again, and not kept") {
  const lowered kept = lower(find("llama_1", "one"), dtype::bf16, target::cuda),
                again = lower(find("llama_1", "norms_again"), dtype::bf16, target::cuda);
  // The block that recomputes, which is every second one.
  const body &all = kept.bodies.at(1), &fewer = again.bodies.at(2);
  CHECK(fewer.repeated > 0);
  const auto bytes_of = [](std::size_t width) { return rankc::runtime::fp8_layout{256, width}.bytes(); };
  CHECK(fewer.saved_bytes + 2 * bytes_of(64) + bytes_of(176) <= all.saved_bytes);
}

TEST_CASE("what is needed besides is rounded apart") {
  const body gpt = lower(find("gpt2_1", "one"), dtype::bf16, target::cuda).bodies.at(1);
  CHECK(count(gpt, "gelu_e4m3") == 1);
  CHECK(count(gpt, "gelu_grad") == 1);  // the bias gradient needs gelu's gradient, too
  CHECK(count(gpt, "to_e5m2") == 4);
}

TEST_CASE("on a target that packs no linears one input of three is rounded once") {
  const lowered l = lower(find("llama_1", "one"), dtype::f64, target::host);
  const body& block = l.bodies.at(1);
  CHECK(count(block, "linear_fp8") == 7);
  CHECK(count(block, "to_e4m3") == 4);
  CHECK(count(block, "to_e5m2") == 7);
  CHECK(count(block, "weight_to_e4m3") == 14);
}

TEST_CASE("layers of other sizes, and routers, stay in the plan's precision") {
  using namespace rankc;
  const plan_data mixed = narrowing::plan_of_mixed_sizes(), experts = narrowing::plan_with_routers();
  const codegen::lowered l = lower(mixed, dtype::f32, target::host);
  CHECK(count(l.bodies.at(1), "linear_fp8") == 4);
  CHECK(count(l.bodies.at(1), "linear") == 2);
  const codegen::lowered m = lower(experts, dtype::f32, target::host);
  CHECK(count(m.bodies.at(1), "linear_fp8") == 4);
  CHECK(count(m.bodies.at(1), "linear") == 1);
}

namespace {

/// Check that changed operand roundings are refused. `suffix`: of the rows. `other`: a rounding that the
/// recipe does not specify.
void check_operands(const std::string& job, const std::string& suffix, specification::rounding other) {
  const rankc::plan_data& plan = find(job, "one");
  const lowered l = lower(plan, dtype::f64, target::host);
  const program sound = expand_train(l);
  REQUIRE(check_equivalence(sound, prove(sound), specify(plan)).holds);
  const auto products = [&](std::string_view row) {
    std::vector<std::size_t> at;
    for (std::size_t i = 0; i < sound.ranks[0].ops.size(); ++i)
      if (sound.ranks[0].ops[i].row == row) at.push_back(i);
    return at;
  };
  for (const auto rounding : {specification::rounding::none, other}) {
    specification changed = specify(plan);
    for (specification::layer& l : changed.layers)
      for (specification::op& o : l.ops)
        if (o.operands != specification::rounding::none) o.operands = rounding;
    CHECK_FALSE(check_equivalence(sound, prove(sound), changed).holds);
  }
  for (const int bytes : {-256, 256}) {  // shift the columns part of the first rounded tensor
    program p = sound;
    int rounded = 0;
    for (op& o : p.ranks[0].ops) {
      if (o.row == "to_e4m3" + suffix && rounded == 0) rounded = o.writes[0].value;
      for (auto* accesses : {&o.reads, &o.writes})
        for (access& a : *accesses)
          if (rounded != 0 && a.value == rounded) a.end += static_cast<std::size_t>(bytes);
    }
    REQUIRE(rounded != 0);
    const verdict proof = prove(p);
    CHECK((bytes > 0 || proof.ok));
    CHECK_FALSE((proof.ok && check_equivalence(p, proof, specify(plan)).holds));
  }
  int refused = 0;
  const auto check_refused = [&](std::size_t op, std::size_t read, const access& instead) {
    program p = sound;
    p.ranks[0].ops[op].reads[read] = instead;
    const verdict proof = prove(p);
    const bool accepted = proof.ok && check_equivalence(p, proof, specify(plan)).holds;
    CHECK_FALSE(accepted);
    refused += !accepted;
  };
  for (const std::string row : {"linear_fp8", "linear_dx_fp8", "linear_dw_fp8"}) {
    const std::vector<std::size_t> at = products(row + suffix);
    REQUIRE(at.size() > 2);
    for (std::size_t i = 0; i + 1 < at.size(); ++i)  // the operands of the kind's next GEMM
      for (const std::size_t read : {0u, 1u})
        if (const access& other = sound.ranks[0].ops[at[i + 1]].reads[read];
            other.value != sound.ranks[0].ops[at[i]].reads[read].value)
          check_refused(at[i], read, other);
  }
  // The GEMM reads the value before rounding.
  for (const std::string row : {"to_e4m3", "to_e5m2", "weight_to_e4m3"}) {
    if (row + suffix == "to_e5m2_rows") continue;  // no such row exists
    const std::vector<std::size_t> at = products(row + suffix);
    REQUIRE(!at.empty());
    program p = sound;
    for (std::size_t i = 0; i < p.ranks[0].ops.size(); ++i) {
      op& o = p.ranks[0].ops[i];
      for (access& r : o.reads)
        if (r.value == sound.ranks[0].ops[at[0]].writes[0].value) r = sound.ranks[0].ops[at[0]].reads[0];
    }
    const verdict proof = prove(p);
    CHECK_FALSE((proof.ok && check_equivalence(p, proof, specify(plan)).holds));
  }
  CHECK(refused > 50);
}

}  // namespace

TEST_CASE("a program whose products take other operands is refused") {
  check_operands("gpt2_1", "", specification::rounding::fp8_rows);
  check_operands("gpt2_rows_1", "_rows", specification::rounding::fp8);
}

}  // namespace lowering_test
