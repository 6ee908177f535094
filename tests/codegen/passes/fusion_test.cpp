// SPDX-License-Identifier: Apache-2.0
// Packing and fusing of a layer for CUDA, and the ops that they leave alone.
#include <doctest/doctest.h>

#include <rankc/codegen/lowered.hpp>
#include <rankc/plan/make_plan.hpp>
#include <rankc/models/gpt2.hpp>
#include <rankc/models/qwen3_moe.hpp>
#include <rankc/schedules/gpipe.hpp>

#include <algorithm>
#include <string>
#include <utility>

#include "plans.hpp"

namespace heads {

using namespace rankc;

inline constexpr dim words{"vocab", 32}, features{"features", 32};

/// Logits that are not private to the layer: they are its input, or backward reads them, too.
struct given {
  static constexpr std::string_view name = "head";
  constexpr value forward(trace&, value x, const layer_context& c) const {
    return cross_entropy(x, c.input("targets"), axis::tp, c.loss_scale);
  }
};
struct sigmoids {
  static constexpr std::string_view name = "head";
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    const value w = t.parameter("w", {words, features}, {}, initial::normal, 0.02);
    return cross_entropy(sigmoid(linear(x, w)), c.input("targets"), axis::tp, c.loss_scale);
  }
};
template <class Head>
struct under_embedding {
  int vocab = 32, vocab_used = 0;
  constexpr void check(report&) const {}
  constexpr auto stack() const {
    return sequential(models::embedding{token_table(words, features), true}, Head{});
  }
};

}  // namespace heads

namespace fusion_test {

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

std::string functions(const body& b, phase p) {
  std::string words;
  for (const node& n : b.calls(p)) words += (words.empty() ? "" : " ") + std::string(b.function(n));
  return words;
}
std::string forward(const body& b) { return functions(b, phase::forward); }
std::string backward(const body& b) { return functions(b, phase::backward); }

const node& call(const body& b, std::string_view function) {
  const auto n = std::find_if(b.forward.begin(), b.forward.end(),
                              [&](const node& each) { return b.function(each) == function; });
  REQUIRE(n != b.forward.end());
  return *n;
}

}  // namespace

TEST_CASE("GPT-2 on one rank: every pattern is fused") {
  const lowered l = lower_for_cuda("gpt2_8", "one");
  CHECK(forward(l.bodies[1]) ==
        "layer_norm linear_bias attention linear_bias_add layer_norm linear_bias_gelu linear_bias_add");
  CHECK(backward(l.bodies[1]) ==
        "linear_dx_gelu_bias linear_dw linear_dx linear_dw layer_norm_grad_add_bias linear_dx linear_dw "
        "attention_grad "
        "linear_dx linear_dw_bias layer_norm_grad_add_bias");
  // softmax_sums is evaluation's, softmax_sums_grad training's.
  CHECK(forward(l.bodies[2]) == "layer_norm linear softmax_sums softmax_sums_grad cross_entropy");
  CHECK(backward(l.bodies[2]) == "linear_dx linear_dw layer_norm_grad");
}

namespace {

template <class Head>
body lower_head() {
  static const rankc::plan_data plan = rankc::make_plan(
      "two_layers", heads::under_embedding<Head>{}, rankc::parallel_dims{}, rankc::schedules::gpipe{2},
      rankc::training{.seq = 8, .global_batch = 4}, rankc::clusters::h200<1>);
  REQUIRE(rankc::accepts(plan.diagnostics));
  return lower(plan, dtype::bf16, target::cuda).bodies[1];
}

}  // namespace

TEST_CASE("the gradient of logits is made in forward where the layer alone has them") {
  CHECK(forward(lower_head<heads::given>()) == "softmax_sums cross_entropy");
  CHECK(backward(lower_head<heads::given>()) == "softmax_grad");
  CHECK(forward(lower_head<heads::sigmoids>()) == "linear sigmoid softmax_sums cross_entropy");
  CHECK(backward(lower_head<heads::sigmoids>()) == "softmax_grad sigmoid_grad linear_dx linear_dw");
}

TEST_CASE("Llama on one rank: rope turns packed rows in place, in one call") {
  const lowered l = lower_for_cuda("llama_8", "one");
  const body& block = l.bodies[1];
  CHECK(forward(block) == "rms_norm linear rope attention linear_add rms_norm linear swiglu linear_add");
  CHECK(backward(block) ==
        "linear_dx linear_dw swiglu_grad linear_dx linear_dw rms_norm_grad_add linear_dx linear_dw "
        "attention_grad rope_grad "
        "linear_dx linear_dw rms_norm_grad_add");
  const node &rope = call(block, "rope"), &attention = call(block, "attention");
  CHECK(rope["y"].at == rope["x"].at);
  CHECK(size_of(block, rope, "heads").value == 12);  // 8 query heads and 4 key heads of dim 8
  CHECK(size_of(block, rope, "heads").text == "heads + kv_heads");
  // The step from token to token, over queries, keys and values.
  CHECK(size_of(block, rope, "stride").value == 128);
  CHECK(size_of(block, rope, "stride").text == "wq_wk_wv_width");
  CHECK(attention["q"].at.value == rope["y"].at.value);
  CHECK(attention["k"].at.offset == 64 * 2);
  CHECK(attention["v"].at.offset == 96 * 2);
  CHECK(size_of(block, attention, "q_stride").value == 128);
  CHECK(size_of(block, attention, "k_stride").value == 128);
  CHECK(size_of(block, attention, "v_stride").value == 128);
}

TEST_CASE("experts: what gate and up give back is one product") {
  const rankc::plan_data plan =
      rankc::make_plan("moe",
                       rankc::models::qwen3_moe{.layers = 1,
                                                .hidden = 64,
                                                .heads = 2,
                                                .kv_heads = 2,
                                                .head_dim = 32,
                                                .experts = 4,
                                                .top_k = 2,
                                                .expert_ffn = 64,
                                                .vocab = 32},
                       rankc::parallel_dims{}, rankc::schedules::gpipe{1},
                       rankc::training{.seq = 8, .global_batch = 1}, rankc::clusters::h200<1>);
  const std::string calls = backward(lower(plan, dtype::bf16, target::cuda).bodies[1]);
  CHECK(calls.find("swiglu_grad grouped_linear_dw grouped_linear_two grouped_linear_dw collect") !=
        std::string::npos);
  CAPTURE(calls);
  CHECK(calls.find(" add") == std::string::npos);
}

TEST_CASE("where a collective stands between two ops, the patterns around it apply") {
  CHECK(forward(lower_for_cuda("gpt2_8", "tp2").bodies[1]) ==
        "layer_norm linear_bias attention linear all_reduce bias_add_layer_norm linear_bias_gelu linear "
        "all_reduce bias_add");
  CHECK(forward(lower_for_cuda("llama_8", "tp2_sp").bodies[1]) ==
        "rms_norm all_gather linear rope attention linear reduce_scatter add_rms_norm all_gather linear "
        "swiglu linear "
        "reduce_scatter add");
  // The bias follows the collective, so the weights' dy is another value than the bias', and the bias
  // gradient is fused into the norm that reads the residual.
  CHECK(
      backward(lower_for_cuda("gpt2_8", "tp2_sp").bodies[1]) ==
      "all_gather linear_dx_gelu_bias linear_dw linear_dx reduce_scatter layer_norm_grad_add_bias all_gather "
      "linear_dw "
      "linear_dx linear_dw attention_grad linear_dx linear_dw_bias reduce_scatter layer_norm_grad_add_bias");
  // The vocabulary is sharded: a row's maximum is known only after the reduction.
  CHECK(forward(lower_for_cuda("gpt2_8", "tp2").bodies[2]) ==
        "layer_norm linear row_max all_reduce exp_sums all_reduce cross_entropy");
}

TEST_CASE("rows that are gathered for a product, or dealt out behind one, move beside it") {
  const auto pairs = [](const lowered& l, std::size_t layer) {
    std::string words;
    const body& b = l.bodies[layer];
    for (const auto* list : {&b.forward, &b.backward})
      for (std::size_t i = 1; i < list->size(); ++i)
        for (int k = (*list)[i].by_rows; k >= 0 && (*list)[i].by_rows > 0; --k) {
          if (!words.empty()) words += k == (*list)[i].by_rows ? ", " : " ";
          words += b.function((*list)[i - static_cast<std::size_t>(k)]);
        }
    return words;
  };
  const std::string block =
      "all_gather linear, linear reduce_scatter, all_gather linear, linear reduce_scatter, all_gather "
      "linear_dx, "
      "linear_dx reduce_scatter, all_gather linear_dw linear_dx, linear_dx linear_dw reduce_scatter";
  const lowered llama = lower_for_cuda("llama_8", "tp2_sp");
  CHECK(pairs(llama, 1) == block);
  CHECK(pairs(llama, 0) == "");  // the embedding has no GEMM
  CHECK(pairs(llama, 2) == "all_gather linear, linear_dx linear_dw reduce_scatter");
  const lowered gpt2 = lower_for_cuda("gpt2_8", "tp2_sp");
  CHECK(pairs(gpt2, 1) ==
        "all_gather linear_bias, linear reduce_scatter, all_gather linear_bias_gelu, linear reduce_scatter, "
        "all_gather linear_dx_gelu_bias, "
        "linear_dx reduce_scatter, all_gather linear_dw linear_dx, linear_dx linear_dw_bias reduce_scatter");
  CHECK(pairs(lower_for_cuda("llama_8", "tp2"), 1) ==
        "");  // tokens are whole on each rank: no rows to gather
  const auto is_sp = [](const programs::layout& l) { return l.name == std::string("tp2_sp"); };
  const programs::layout& sp =
      *std::find_if(std::begin(programs::layouts), std::end(programs::layouts), is_sp);
  const rankc::plan_data plan = programs::make(programs::jobs[0], sp);
  for (const body& b : lower(plan, dtype::f32, target::host).bodies)  // the host has no copy engines
    for (const auto* list : {&b.forward, &b.backward})
      CHECK(std::none_of(list->begin(), list->end(), [](const node& n) { return n.by_rows > 0; }));
  // The collective's buffers live until the later op of the pair has ended.
  const body& b = llama.bodies[1];
  for (const auto& [list, of] :
       {std::pair(&b.forward, &value::forward), std::pair(&b.backward, &value::backward)})
    for (std::size_t i = 1; i < list->size(); ++i) {
      const int last = static_cast<int>(i), first = last - (*list)[i].by_rows;
      for (int each : {first, last})
        for (const port_use& u : (*list)[static_cast<std::size_t>(each)].ports) {
          if (!(*list)[static_cast<std::size_t>(each)].row->communicates()) continue;
          const auto& lives = b.values[static_cast<std::size_t>(u.at.value)].*of;
          CHECK(lives.first <= first);
          CHECK(lives.last >= last);
        }
    }
}

TEST_CASE("buffers have the names that the model gives values; a packed product has those of its parts") {
  const auto names = [](const lowered& l) {
    std::string all;
    const body& b = l.bodies[1];
    for (std::size_t v = 0; v < b.values.size(); ++v)
      if (b.values[v].where == space::saved || b.values[v].where == space::temp)
        all += (all.empty() ? "" : " ") + b.names.values[v];
    return all;
  };
  CHECK(names(lower_for_cuda("gpt2_8", "tp2_sp")) ==
        "n1 n1_statistics h1 o o_lse o_proj x_mid n2 n2_statistics h2 up act down d_down d_up d_h2 d_o_proj "
        "d_o d_h1 "
        "d_n1 qkv d_qkv attention_scratch attention_grad_scratch");
  CHECK(names(lower_for_cuda("llama_8", "tp2_sp")) ==
        "n1 n1_statistics h1 o o_lse o_proj x_mid n2 n2_statistics h2 act down d_down d_act d_h2 d_o_proj "
        "d_o d_h1 "
        "d_n1 qkv d_qkv gate_up d_gate_up attention_scratch attention_grad_scratch");
}

TEST_CASE("a packed product covers the parameters of its parts, and they are neighbours") {
  const lowered l = lower_for_cuda("gpt2_8", "tp2");
  const body& block = l.bodies[1];
  const std::vector<operand> qkv = reads_of(block, call(block, "linear_bias"));
  REQUIRE(qkv.size() == 7);  // x, three weights, three biases
  for (int first : {1, 4}) {
    const auto place = [&](int i) { return l.groups[1].of_parameter[block.at(qkv[first + i]).of]; };
    for (int i = 0; i < 3; ++i) {
      CHECK(qkv[first + i].implied == (i > 0));
      if (i > 0)
        CHECK(place(i).offset ==
              place(i - 1).offset + block.parameters[block.at(qkv[first + i - 1]).of].elements());
    }
  }
}

TEST_CASE("regions of a bf16 program are f32, beside a rounded copy of the weights") {
  const lowered l = lower_for_cuda("gpt2_8", "one");
  const arena_plan& a = l.ranks[0].arena;
  const std::size_t elements = l.ranks[0].parameter_elements, tokens = l.ranks[0].find_input("tokens")->where;
  CHECK(a.gradients - a.weights >= 4 * elements);
  CHECK(tokens - a.working_copy >= 2 * elements);
  CHECK(tokens - a.working_copy < 2 * elements + 256);
}

}  // namespace fusion_test
