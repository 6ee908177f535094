// SPDX-License-Identifier: Apache-2.0
#include "plans.hpp"

#include <fuzz/plan.hpp>
#include <fuzz/schedules.hpp>

#include <rankc/plan/make_plan.hpp>
#include <rankc/rankc.hpp>

namespace field {

namespace {

using namespace rankc;

struct layout {
  int dp, tp, pp;
  bool sequence_parallel;
  fuzz::order by;
  int microbatches, stages_per_rank = 1, shards = 1, cp = 1;
  bool exchanges_heads = false, rings = false;
};

constexpr layout layouts[]{{1, 1, 1, false, fuzz::order::gpipe, 1},
                           {2, 1, 1, false, fuzz::order::gpipe, 2},
                           {1, 2, 1, false, fuzz::order::gpipe, 1},
                           {1, 2, 1, true, fuzz::order::gpipe, 2},
                           {2, 2, 1, true, fuzz::order::gpipe, 2},
                           {1, 1, 2, false, fuzz::order::gpipe, 4},
                           {1, 1, 2, false, fuzz::order::one_f_one_b, 4},
                           {1, 2, 2, true, fuzz::order::one_f_one_b, 2},
                           {2, 1, 2, false, fuzz::order::one_f_one_b, 2},
                           {2, 2, 2, true, fuzz::order::one_f_one_b, 2},
                           {2, 2, 2, false, fuzz::order::gpipe, 2},
                           {1, 1, 2, false, fuzz::order::interleaved_one_f_one_b, 4, 2},
                           {1, 2, 2, true, fuzz::order::interleaved_zero_bubble, 2, 2},
                           {1, 1, 2, false, fuzz::order::looped_bfs, 2, 2},
                           {1, 1, 2, false, fuzz::order::zero_bubble_1p, 4},
                           {2, 1, 2, false, fuzz::order::zero_bubble_2p, 2},
                           {1, 2, 2, false, fuzz::order::zero_bubble_v, 2, 2},
                           {1, 1, 2, false, fuzz::order::v_half, 2, 2},
                           {1, 1, 2, false, fuzz::order::one_f_one_b_v, 2, 2},
                           {1, 1, 2, false, fuzz::order::group_interleaved, 2, 2},
                           {1, 1, 2, false, fuzz::order::dual_pipe, 2},
                           {1, 2, 2, false, fuzz::order::dual_pipe, 4},
                           {2, 1, 2, false, fuzz::order::dual_pipe_v, 2, 2},
                           {1, 1, 1, false, fuzz::order::gpipe, 2, 1, 2},
                           {1, 1, 1, false, fuzz::order::gpipe, 1, 1, 4},
                           {2, 1, 1, false, fuzz::order::gpipe, 1, 1, 2},
                           {1, 2, 1, true, fuzz::order::gpipe, 2, 1, 2},
                           {1, 1, 2, false, fuzz::order::one_f_one_b, 2, 1, 2},
                           {1, 1, 1, false, fuzz::order::gpipe, 2, 1, 1, 2},
                           {1, 2, 1, true, fuzz::order::gpipe, 1, 1, 1, 2},
                           {1, 1, 1, false, fuzz::order::gpipe, 2, 1, 1, 2, true},
                           {1, 1, 2, false, fuzz::order::one_f_one_b, 2, 1, 2, 2, true},
                           {1, 1, 1, false, fuzz::order::gpipe, 2, 1, 1, 2, false, true},
                           {1, 1, 1, false, fuzz::order::gpipe, 1, 1, 1, 3, false, true},
                           {1, 2, 1, true, fuzz::order::gpipe, 1, 1, 1, 2, false, true},
                           {1, 1, 2, false, fuzz::order::one_f_one_b, 2, 1, 2, 2, false, true},
                           {1, 1, 1, false, fuzz::order::gpipe, 1, 1, 1, 4, true, true},
                           {1, 1, 2, false, fuzz::order::one_f_one_b, 2, 1, 1, 6, true, true}};

/// A decoder whose layers alternate between a window with a softcap and larger value heads than key heads,
/// and a scale with sinks and smaller value heads.
struct alternating {
  int layers, window = 3, vocab = 12, vocab_used = 0;
  constexpr void check(report&) const {}
  constexpr model_sizes sizes() const {
    return {.layers = layers,
            .hidden = 16,
            .heads = 4,
            .kv_heads = 4,
            .ffn = 12,
            .vocab = vocab,
            .rotary = true,
            .head_dim = 4};
  }
  constexpr auto stack() const {
    const models::decoder d{.sizes = sizes(), .theta = 100};
    return sequential(d.embedding(),
                      pattern{layers, d.block({.window = window, .softcap = 0.5, .value_dim = 6}),
                              d.block({.scale = 0.75, .sinks = true, .value_dim = 2})},
                      d.head());
  }
};

/// The degree of Ulysses attention.
int ulysses_of(const layout& l) {
  if (!l.exchanges_heads) return 1;
  return l.rings ? 2 : l.cp;
}

/// The name of the cp attention in a plan's name.
std::string attention_name(const layout& l) {
  if (l.exchanges_heads) return l.rings ? " pairs" : " heads";
  return l.rings ? " ring" : " cp";
}

/// The momentum of SGD in the plan with this number; -1: AdamW.
double momentum_of(std::size_t plan) {
  if (plan % 5 == 4) return 0.9;
  return plan % 11 == 0 ? 0 : -1;
}

plan_data make(const auto& model, const std::string& name, const layout& l,
               training recipe = {.seq = 4, .global_batch = 4}) {
  recipe.precision = f64;
  if (l.cp > 2) recipe.seq = 2 * l.cp;
  const parallel_dims dims{.world = l.dp * l.shards * l.cp * l.tp * l.pp,
                           .dp_replicate = l.dp,
                           .dp_shard = l.shards,
                           .cp = l.cp,
                           .tp = l.tp,
                           .pp = l.pp,
                           .ulysses = ulysses_of(l),
                           .sequence_parallel = l.sequence_parallel,
                           .cp_attention = l.rings ? cp_attention::ring : cp_attention::gather};
  const fuzz::schedule schedule = fuzz::make_schedule({l.by, l.microbatches, l.stages_per_rank}, l.pp);
  return make_plan(name + " dp" + std::to_string(l.dp) +
                       (l.shards > 1 ? " shards" + std::to_string(l.shards) : "") +
                       (l.cp > 1 ? attention_name(l) + std::to_string(l.cp) : "") + " tp" +
                       std::to_string(l.tp) + (l.sequence_parallel ? " sp" : "") + " pp" +
                       std::to_string(l.pp) + " " + std::string(schedule.name),
                   model, dims, schedule, recipe, clusters::cpu);
}

}  // namespace

std::vector<plan_data> tiny_plans() {
  std::vector<plan_data> all;
  for (const layout& l : layouts) {
    const int layers = std::max(2, l.pp * l.stages_per_rank);
    const bool is_odd = all.size() / 2 % 2;  // odd numbers tie the tables
    const double momentum = momentum_of(all.size());
    training recipe{.seq = 4, .global_batch = 4};
    if (momentum >= 0) recipe.optimizer = sgd{.momentum = momentum};
    const int ffn = l.shards == 4 ? 10 : 12;  // rows that do not divide by 4 shards
    all.push_back(make(models::gpt2{.layers = layers,
                                    .hidden = 8,
                                    .heads = 2,
                                    .ffn = ffn,
                                    .vocab = 12,
                                    .vocab_used = 10,
                                    .tied = !is_odd},
                       "gpt2", l, recipe));
    all.push_back(make(models::llama{.layers = layers,
                                     .hidden = 16,
                                     .heads = 4,
                                     .kv_heads = 2,
                                     .ffn = ffn,
                                     .vocab = 16,
                                     .tied = is_odd},
                       "llama", l));
  }
  const models::gpt2 gpt{.layers = 4, .hidden = 8, .heads = 2, .ffn = 12, .vocab = 12};
  const low_rank_adaptation lora{.rank = 2, .alpha = 3, .targets = {"wq", "wo", "w2"}, .trained = {"wpe"}};
  for (std::size_t i = 3; i < std::size(layouts); i += 4) {
    all.push_back(make(gpt, "lora", layouts[i], {.seq = 4, .global_batch = 4, .lora = lora}));
    all.push_back(
        make(gpt, "frozen", layouts[i], {.seq = 4, .global_batch = 4, .frozen = {"wte", "wpe", "wk", "w1"}}));
  }
  for (std::size_t i = 0; i < std::size(layouts); i += 3) {
    const int layers = std::max(2, layouts[i].pp * layouts[i].stages_per_rank);
    const models::mixtral mixtral{.layers = layers,
                                  .hidden = 16,
                                  .heads = 4,
                                  .kv_heads = 2,
                                  .experts = 4,
                                  .top_k = 2,
                                  .expert_ffn = 4,
                                  .vocab = 16};
    const models::qwen3_moe qwen{.layers = layers,
                                 .hidden = 16,
                                 .heads = 4,
                                 .kv_heads = 2,
                                 .head_dim = 4,
                                 .experts = 5,
                                 .top_k = 3,
                                 .expert_ffn = 4,
                                 .vocab = 16,
                                 .ffn = 8,
                                 .mlp_only_layers = {1},
                                 .norm_topk_prob = i % 4 != 0};
    all.push_back(i % 2 ? make(mixtral, "mixtral", layouts[i]) : make(qwen, "qwen3_moe", layouts[i]));
  }
  for (std::size_t i = 0; i < std::size(layouts); i += layouts[i].cp > 1 ? 1 : 7) {
    const int layers = std::max(2, layouts[i].pp * layouts[i].stages_per_rank);
    const training recipe{.seq = 4, .global_batch = 4, .end_of_document = 3};
    const models::gpt2 packed_gpt{.layers = layers, .hidden = 16, .heads = 4, .ffn = 12, .vocab = 12};
    const models::llama packed_llama{
        .layers = layers, .hidden = 16, .heads = 4, .kv_heads = 4, .ffn = 12, .vocab = 12};
    all.push_back(i % 2 ? make(packed_gpt, "documents gpt2", layouts[i], recipe)
                        : make(packed_llama, "documents llama", layouts[i], recipe));
  }
  return all;
}

std::vector<plan_data> windowed_plans() {
  std::vector<plan_data> all;
  for (std::size_t i = 0; i < std::size(layouts); i += layouts[i].cp > 1 ? 1 : 7) {
    training recipe{.seq = 4, .global_batch = 4};
    if (i % 3 == 0) recipe.end_of_document = 3;
    const int layers = std::max(2, layouts[i].pp * layouts[i].stages_per_rank);
    all.push_back(make(alternating{layers}, "window", layouts[i], recipe));
  }
  // A chunk has one token, and the ring has no step for the opposite rank.
  constexpr layout ring_of_four{.dp = 1,
                                .tp = 1,
                                .pp = 1,
                                .sequence_parallel = false,
                                .by = fuzz::order::gpipe,
                                .microbatches = 2,
                                .cp = 4,
                                .rings = true};
  all.push_back(make(alternating{.layers = 2, .window = 2}, "window of two", ring_of_four));
  return all;
}

std::vector<plan_data> masked_plans() {
  std::vector<plan_data> all;
  for (const std::size_t i : {0u, 1u, 4u, 6u, 9u, 16u, 20u, 22u, 25u, 31u, 35u}) {
    const int layers = std::max(2, layouts[i].pp * layouts[i].stages_per_rank);
    training recipe{.seq = 4, .global_batch = 4, .ignored_label = -100};
    if (i % 3 == 1) recipe.end_of_document = 3;
    const models::gpt2 gpt{.layers = layers, .hidden = 16, .heads = 4, .ffn = 12, .vocab = 12};
    const models::mixtral mixtral{.layers = layers,
                                  .hidden = 16,
                                  .heads = 4,
                                  .kv_heads = 4,
                                  .experts = 4,
                                  .top_k = 2,
                                  .expert_ffn = 4,
                                  .vocab = 16};
    all.push_back(i % 4 == 0 ? make(mixtral, "masked mixtral", layouts[i], recipe)
                             : make(gpt, "masked gpt2", layouts[i], recipe));
  }
  return all;
}

std::vector<plan_data> weighted_plans() {
  std::vector<plan_data> all;
  for (const std::size_t i : {0u, 1u, 4u, 6u, 9u, 16u, 22u, 31u, 35u}) {
    const int layers = std::max(2, layouts[i].pp * layouts[i].stages_per_rank);
    training recipe{.seq = 4, .global_batch = 4, .token_weights = true};
    if (i % 2 == 1) recipe.ignored_label = -100;
    if (i % 3 == 1) recipe.end_of_document = 3;
    const models::gpt2 gpt{.layers = layers, .hidden = 16, .heads = 4, .ffn = 12, .vocab = 12};
    all.push_back(make(gpt, "weighted gpt2", layouts[i], recipe));
  }
  return all;
}

std::vector<plan_data> narrowed_plans() {
  std::vector<plan_data> all;
  for (const std::size_t i : {0u, 3u, 7u, 16u, 22u, 26u, 30u}) {
    const training recipe{.seq = 16, .global_batch = 4, .linears = all.size() % 2 ? fp8_rows : fp8};
    const int layers = std::max(2, layouts[i].pp * layouts[i].stages_per_rank);
    const models::gpt2 gpt{.layers = layers, .hidden = 32, .heads = 4, .ffn = 32, .vocab = 12};
    const models::llama llama{
        .layers = layers, .hidden = 32, .heads = 4, .kv_heads = 4, .ffn = 32, .vocab = 12};
    all.push_back(i % 2 ? make(gpt, "fp8 gpt2", layouts[i], recipe)
                        : make(llama, "fp8 llama", layouts[i], recipe));
  }
  return all;
}

std::optional<plan_data> drawn_plan(std::uint64_t seed, std::uint64_t index, int most_ranks) {
  plan_data p =
      fuzz::make(fuzz::draw_plan(seed, index), "drawn " + std::to_string(seed) + " " + std::to_string(index));
  if (!accepts(p.diagnostics) || p.dims.world > most_ranks) return {};
  return p;
}

std::vector<plan_data> drawn_plans(std::uint64_t seed, int count, int most_ranks) {
  std::vector<plan_data> all;
  for (std::uint64_t i = 0; static_cast<int>(all.size()) < count; ++i)
    if (std::optional<plan_data> p = drawn_plan(seed, i, most_ranks)) all.push_back(std::move(*p));
  return all;
}

std::vector<subject> subjects_of(const plan_data& p, codegen::dtype type, codegen::target to) {
  const codegen::lowered low = codegen::lower(p, type, to);
  const std::string name = std::string(p.name) + (to == codegen::target::cuda ? " cuda" : " host");
  codegen::specification model = codegen::specify(p);
  model.optimizer.bf16_reductions = to == codegen::target::cuda;
  const auto loads = std::make_shared<const execution::loader>(loader_of(p));
  std::vector<subject> all;
  if (low.trains()) all.push_back({name + " train", codegen::expand_train(low), model, loads});
  all.push_back({name + " evaluate", codegen::expand_evaluate(low), model, loads});
  return all;
}

subject subject_of(const plan_data& p, std::size_t turn) {
  const bool on_host = turn / 2 % 2;
  std::vector<subject> of = subjects_of(p, on_host ? codegen::dtype::f64 : codegen::dtype::bf16,
                                        on_host ? codegen::target::host : codegen::target::cuda);
  return std::move(turn % 7 == 3 ? of.back() : of.front());
}

std::vector<subject> subjects_of(const std::vector<plan_data>& plans) {
  std::vector<subject> all;
  for (std::size_t i = 0; i < plans.size(); ++i) all.push_back(subject_of(plans[i], i));
  return all;
}

}  // namespace field
