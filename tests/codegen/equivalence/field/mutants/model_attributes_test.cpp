// SPDX-License-Identifier: Apache-2.0
// Attributes and element types must equal the model's: a program with others differs, even if it computes the
// same numbers.
#include <doctest/doctest.h>

#include "../machine/element_types.hpp"
#include "../machine/execution.hpp"
#include "../rows/model_attributes.hpp"
#include "mutants.hpp"
#include "../plans/plans.hpp"

#include <algorithm>

#include "../../../../some_of.hpp"

namespace model_attributes_test {

using namespace field;
using rankc::codegen::op;
using rankc::codegen::program;
using rankc::codegen::specification;

namespace {

matrix drawn(extent e, std::uint64_t key) {
  matrix m(e);
  for (std::size_t i = 0; i < m.of.size(); ++i) m.of[i] = draw(mix(key, i));
  return m;
}

call attention_of(std::uint64_t key, std::int64_t unit, std::int64_t seq) {
  call c;
  c.seq = seq;
  for (const char* port : {"q", "k", "v"}) c.give(port, drawn({8, 8, unit}, mix(key, key_of(port))));
  return c;
}

bool is_equal(const program& p, const specification& s) { return execution::over_field(s)->run(p).equal; }

/// On all ranks, store numbers of one type in another one.
int change_types(program& p, element_type from, element_type to, std::string_view row) {
  std::vector<int> values;
  for (const auto& rank : p.ranks)
    for (const op& o : rank.ops)
      for (const rankc::codegen::access& a : o.writes)
        if (o.row == row && a.type == from) values.push_back(a.value);
  for (auto& rank : p.ranks)
    for (op& o : rank.ops)
      for (auto* list : {&o.reads, &o.writes})
        for (rankc::codegen::access& a : *list)
          if (std::find(values.begin(), values.end(), a.value) != values.end()) a.type = to;
  return static_cast<int>(values.size());
}

}  // namespace

TEST_CASE(
    "an op that takes an operand of the model's op must take its attributes, in chunks of sequences too") {
  model_attributes of_model;
  of_model.note(find_row("attention"), attention_of(1, 4, 4));
  for (const char* row : {"attention", "chunk_attention", "ring_attention"}) {
    CAPTURE(row);
    CHECK(of_model.agree(find_row(row), attention_of(1, 4, 4)));
    CHECK_FALSE(of_model.agree(find_row(row), attention_of(1, 2, 4)));
    CHECK_FALSE(of_model.agree(find_row(row), attention_of(1, 4, 2)));
    for (const rankc::attention_setting by :
         {rankc::attention_setting{.window = 2}, {.softcap = 1}, {.scale = 1}, {.causal = false}}) {
      call c = attention_of(1, 4, 4);
      c.attention = by;
      CHECK_FALSE(of_model.agree(find_row(row), c));
    }
  }
}

TEST_CASE("the model says nothing of an operand that it does not have, or that two of its ops take") {
  model_attributes of_model;
  of_model.note(find_row("attention"), attention_of(1, 4, 4));
  CHECK(of_model.agree(find_row("attention"), attention_of(2, 2, 4)));
  of_model.note(find_row("attention"), attention_of(1, 2, 4));
  CHECK(of_model.agree(find_row("attention"), attention_of(1, 8, 4)));
}

TEST_CASE("a program whose attention has another window, softcap, scale or mask than the model's differs") {
  const auto changes = {+[](rankc::attention_setting& by) { by.window = 2; },
                        +[](rankc::attention_setting& by) { by.softcap += 1; },
                        +[](rankc::attention_setting& by) { by.scale += 1; },
                        +[](rankc::attention_setting& by) { by.causal = !by.causal; }};
  for (const rankc::plan_data& plan : rankc::test::some_of(windowed_plans())) {
    const subject s = subject_of(plan, 2);
    CAPTURE(s.name);
    CHECK(is_equal(s.program, s.model));
    for (const auto by : changes) {
      program p = s.program;
      for (auto& rank : p.ranks)
        for (op& o : rank.ops)
          if (!o.attention.is_plain()) by(o.attention);
      CHECK_FALSE(is_equal(p, s.model));
    }
  }
}

TEST_CASE("products are rounded exactly where the model's are: the same numbers differ otherwise") {
  using rounding = specification::rounding;
  for (const subject& s : subjects_of(narrowed_plans())) {
    CAPTURE(s.name);
    CHECK(is_equal(s.program, s.model));
    specification other = s.model;
    for (specification::layer& l : other.layers)
      for (specification::op& o : l.ops) o.operands = rounding::none;
    CHECK_FALSE(is_equal(s.program, other));
  }
  const subject plain = subjects_of(tiny_plans()).front();
  specification rounded = plain.model;
  for (specification::op& o : rounded.layers.at(1).ops)
    if (o.row == "linear") o.operands = rounding::fp8;
  CHECK(is_equal(plain.program, plain.model));
  CHECK_FALSE(is_equal(plain.program, rounded));
}

TEST_CASE("only ids, targets, starts, choices, places and offsets are whole numbers") {
  const subject s = subjects_of(tiny_plans()).front();
  REQUIRE(is_equal(s.program, s.model));
  program p = s.program;
  REQUIRE(change_types(p, element_type::f32, element_type::i32, "layer_norm") > 0);
  CHECK_FALSE(is_equal(p, s.model));
  CHECK(takes("embedding", "ids", false, element_type::i32));
  CHECK_FALSE(takes("embedding", "ids", false, element_type::f32));
}

TEST_CASE("a rounded row takes fp8 operands and makes fp8 results, and no other row does") {
  CHECK(takes("linear_fp8", "w", false, element_type::e4m3));
  CHECK(takes("linear_dx_fp8", "dy", false, element_type::e5m2));
  CHECK_FALSE(takes("linear_dx_fp8", "dy", false, element_type::e4m3));
  CHECK(takes("linear_bias_fp8", "b", false, element_type::f32));
  CHECK(takes("rms_norm_e4m3_rows", "y", true, element_type::e4m3_rows));
  CHECK(takes("rms_norm_e4m3_rows", "statistics", true, element_type::f32));
  CHECK_FALSE(takes("linear", "w", false, element_type::e4m3));
}

TEST_CASE("a gradient that is kept in bf16 for a while differs, and an activation does not") {
  const subject s = subject_of(tiny_plans().front(), 2);  // the plan is in f64
  int gradients = 0, activations = 0;
  for (unsigned seed = 0; gradients < 5 || activations < 5; ++seed) {
    REQUIRE(seed < 5000);
    program p = s.program;
    std::mt19937 random(seed);
    const fault f = make_fault(p, fault_form::structure, random);
    if (f.kind != "kept in bf16") continue;
    CAPTURE(f.text);
    if (f.text.find("_dw") != f.text.npos) {
      CHECK_FALSE(is_equal(p, s.model));
      ++gradients;
    } else if (f.text.find("0F0: layers") != f.text.npos) {
      CHECK(is_equal(p, s.model));
      ++activations;
    }
  }
}

TEST_CASE("sums over tokens begin in f32 or wider, no narrower than their addends, and stay so") {
  using enum element_type;
  using enum token_sum;
  CHECK(sum_in_result("linear_dw", "dw", f32, {{bf16, none}, {bf16, none}}) == wide);
  CHECK(sum_in_result("linear_dw", "dw", bf16, {{bf16, none}, {bf16, none}}) == narrowed);
  CHECK(sum_in_result("linear_dw", "dw", f32, {{f64, none}, {f64, none}}) == narrowed);
  CHECK(sum_in_result("embedding_grad", "dtable", f32, {{bf16, none}, {i32, none}}) == wide);
  CHECK(sum_in_result("z_loss", "loss", f32, {{f32, narrowed}, {f32, wide}}) == narrowed);
  CHECK(sum_in_result("copy", "y", bf16, {{f32, wide}}) == narrowed);
  CHECK(sum_in_result("add", "y", f32, {{bf16, narrowed}, {f32, wide}}) == narrowed);
  CHECK(sum_in_result("copy", "y", bf16, {{f32, none}}) == none);
  CHECK(sum_in_result("mul_grad", "db", bf16, {{bf16, none}}) == none);
  CHECK(sum_in_result("balance_loss_grad", "ds", bf16, {{f32, wide}}) == none);
}

TEST_CASE("a step keeps weights and moments in f32 or f64, and in bf16 where the recipe says so") {
  using enum rankc::codegen::holding_kind;
  specification::update by;
  CHECK_FALSE(keeps(weight, element_type::bf16, by));
  CHECK(keeps(working_copy, element_type::bf16, by));
  CHECK_FALSE(keeps(ids, element_type::f32, by));
  by.bf16_weights = true;
  CHECK(keeps(weight, element_type::bf16, by));
  CHECK_FALSE(keeps(first_moment, element_type::bf16, by));
  CHECK_FALSE(keeps(norm, element_type::bf16, by));
}

}  // namespace model_attributes_test
