// SPDX-License-Identifier: Apache-2.0
// What packing and fusing make of a layer for CUDA, and what they leave alone.
#include <doctest/doctest.h>

#include <rankc/codegen/lowered.hpp>

#include <algorithm>
#include <string>

#include "plans.hpp"

using namespace rankc::codegen;

namespace {

lowered lower_for_cuda(const std::string& job, const std::string& layout) {
  for (const programs::job& j : programs::jobs)
    for (const programs::layout& l : programs::layouts)
      if (job == j.name && layout == l.name) {
        static rankc::plan_data plan;  // a lowered plan refers to its plan
        plan = programs::make(j, l);
        return lower(plan, dtype::bf16, target::cuda);
      }
  FAIL("no such plan");
  return {};
}

std::string functions(const std::vector<kernel>& list) {
  std::string words;
  for (const kernel& k : list) words += (words.empty() ? "" : " ") + k.function;
  return words;
}

const kernel& call(const std::vector<kernel>& list, const std::string& function) {
  const auto k = std::find_if(list.begin(), list.end(), [&](const kernel& c) { return c.function == function; });
  REQUIRE(k != list.end());
  return *k;
}

}  // namespace

TEST_CASE("GPT-2 on one rank: every pattern is fused") {
  const lowered l = lower_for_cuda("gpt2_8", "one");
  CHECK(functions(l.bodies[1].forward) ==
        "layer_norm linear_bias attention linear_bias_add layer_norm linear_bias_gelu linear_bias_add");
  CHECK(functions(l.bodies[1].backward) ==
        "linear_dx_gelu_bias linear_dw_bias linear_dx linear_dw layer_norm_grad_add linear_dx linear_dw_bias attention_grad "
        "linear_dx linear_dw_bias layer_norm_grad_add");
  CHECK(functions(l.bodies[2].forward) == "layer_norm linear softmax_sums cross_entropy");
  CHECK(functions(l.bodies[2].backward) == "softmax_grad linear_dx linear_dw layer_norm_grad");
}

TEST_CASE("Llama on one rank: rope turns packed rows in place, in one call") {
  const lowered l = lower_for_cuda("llama_8", "one");
  const body& block = l.bodies[1];
  CHECK(functions(block.forward) == "rms_norm linear rope attention linear_add rms_norm linear swiglu linear_add");
  CHECK(functions(block.backward) ==
        "linear_dx linear_dw swiglu_grad linear_dx linear_dw rms_norm_grad_add linear_dx linear_dw attention_grad rope_grad "
        "linear_dx linear_dw rms_norm_grad_add");
  const kernel &rope = call(block.forward, "rope"), &attention = call(block.forward, "attention");
  CHECK(rope.writes[0] == rope.reads[0]);
  CHECK(rope.sizes[1].value == 12);   // 8 query heads and 4 key heads of dim 8
  CHECK(rope.sizes[4].value == 128);  // from token to token: queries, keys and values
  CHECK(attention.reads[0].index == rope.writes[0].index);
  CHECK(attention.reads[1].offset == 64 * 2);
  CHECK(attention.reads[2].offset == 96 * 2);
  CHECK(attention.sizes[5].value == 128);
  CHECK(attention.sizes[6].value == 128);
}

TEST_CASE("where a collective stands between two ops, the patterns around it apply") {
  CHECK(functions(lower_for_cuda("gpt2_8", "tp2").bodies[1].forward) ==
        "layer_norm linear_bias attention linear all_reduce bias_add_layer_norm linear_bias_gelu linear all_reduce bias_add");
  CHECK(functions(lower_for_cuda("llama_8", "tp2_sp").bodies[1].forward) ==
        "rms_norm all_gather linear rope attention linear reduce_scatter add_rms_norm all_gather linear swiglu linear "
        "reduce_scatter add");
  // The vocabulary is split: a row's maximum is known only after the reduction.
  CHECK(functions(lower_for_cuda("gpt2_8", "tp2").bodies[2].forward) ==
        "layer_norm linear row_max all_reduce exp_sums all_reduce cross_entropy");
}

TEST_CASE("buffers have the names that the model gives values; a packed product has those of its parts") {
  const auto names = [](const lowered& l) {
    std::string all;
    for (const buffer& b : l.bodies[1].buffers) all += (all.empty() ? "" : " ") + b.name;
    return all;
  };
  CHECK(names(lower_for_cuda("gpt2_8", "tp2_sp")) ==
        "n1 n1_statistics h1 o o_lse o_proj x_mid n2 n2_statistics h2 up act down d_down d_up d_h2 d_o_proj d_o d_h1 "
        "d_n1 qkv d_qkv attention_scratch attention_grad_scratch");
  CHECK(names(lower_for_cuda("llama_8", "tp2_sp")) ==
        "n1 n1_statistics h1 o o_lse o_proj x_mid n2 n2_statistics h2 act down d_down d_act d_h2 d_o_proj d_o d_h1 "
        "d_n1 qkv d_qkv gate_up d_gate_up attention_scratch attention_grad_scratch");
}

TEST_CASE("a packed product covers the parameters of its parts, and they are neighbours") {
  const lowered l = lower_for_cuda("gpt2_8", "tp2");
  const body& block = l.bodies[1];
  const kernel& qkv = call(block.forward, "linear_bias");
  REQUIRE(qkv.reads.size() == 7);  // x, three weights, three biases
  for (int first : {1, 4}) {
    const auto place = [&](int i) { return l.groups[1].of_parameter[qkv.reads[first + i].index]; };
    for (int i = 0; i < 3; ++i) {
      CHECK(qkv.reads[first + i].implied == (i > 0));
      if (i > 0)
        CHECK(place(i).offset == place(i - 1).offset + block.parameters[qkv.reads[first + i - 1].index].elements());
    }
  }
}

TEST_CASE("regions of a bf16 program are f32, beside a rounded copy of the weights") {
  const lowered l = lower_for_cuda("gpt2_8", "one");
  const arena_plan& a = l.ranks[0].arena;
  const std::size_t elements = l.ranks[0].parameter_elements;
  CHECK(a.gradients - a.weights >= 4 * elements);
  CHECK(a.tokens - a.working_copy >= 2 * elements);
  CHECK(a.tokens - a.working_copy < 2 * elements + 256);
}
