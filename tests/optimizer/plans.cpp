// SPDX-License-Identifier: Apache-2.0
#include "plans.hpp"

#include <rankc/plan/make_plan.hpp>
#include <rankc/rankc.hpp>
#include <rankc/schedules/zero_bubble_v.hpp>

#include <algorithm>

#include "../odd/adagrad.hpp"
#include "../odd/lion.hpp"

namespace optimizing {

namespace {

using namespace rankc;

struct named {
  const char* name;
  training recipe;
  bool everywhere = false;  // on all layouts; otherwise on one rank and in padded shards
};
constexpr int seq = 8, batch = 12;
constexpr named optimizers[]{
    {"adamw", {.seq = seq, .global_batch = batch, .precision = f64, .clip = 0.5}},
    {"adamw_bf16", {.seq = seq, .global_batch = batch, .precision = f64, .clip = 0.5, .moments = bf16}},
    {"adamw_stochastic",
     {.seq = seq,
      .global_batch = batch,
      .precision = f64,
      .clip = 0.5,
      .moments = bf16,
      .rounding = stochastic,
      .rounding_seed = 5},
     true},
    {"sgd",
     {.seq = seq, .global_batch = batch, .precision = f64, .clip = 0.5, .optimizer = sgd{.momentum = 0.9}},
     true},
    {"sgd_nesterov",
     {.seq = seq,
      .global_batch = batch,
      .precision = f64,
      .optimizer = sgd{.momentum = 0.8, .nesterov = true}}},
    {"sgd_plain", {.seq = seq, .global_batch = batch, .precision = f64, .optimizer = sgd{}}},
    {"sgd_stochastic",
     {.seq = seq,
      .global_batch = batch,
      .precision = f64,
      .clip = 0.5,
      .optimizer = sgd{.momentum = 0.9},
      .moments = bf16,
      .rounding = stochastic},
     true},
    {"no_master", {.seq = seq, .global_batch = batch, .master_weights = false, .rounding = stochastic}, true},
    {"adamw_reduced", {.seq = seq, .global_batch = batch, .reductions = bf16}, true},
    {"no_master_bf16",
     {.seq = seq, .global_batch = batch, .moments = bf16, .master_weights = false, .rounding = stochastic}},
    {"no_master_sgd",
     {.seq = seq,
      .global_batch = batch,
      .optimizer = sgd{},
      .master_weights = false,
      .rounding = stochastic}},
    {"lion", {.seq = seq, .global_batch = batch, .precision = f64, .clip = 0.5, .optimizer = user::lion{}}},
    {"adagrad",
     {.seq = seq,
      .global_batch = batch,
      .precision = f64,
      .clip = 0.5,
      .optimizer = user::adagrad{.lr_decay = 0.25, .eps = 1e-6}}}};

/// 18 and 66 rows need padding in four shards.
constexpr models::gpt2 gpt{.layers = 2, .hidden = 18, .heads = 2, .ffn = 36, .vocab = 66};
constexpr models::llama llama{.layers = 2, .hidden = 16, .heads = 4, .kv_heads = 2, .ffn = 24, .vocab = 64};

class list {
 public:
  explicit list(const named& n) : of_(n) {}
  void add(const std::string& layout, const auto& model, const parallel_dims& dims, const auto& schedule) {
    const bool is_few = layout.ends_with("one") || layout == "shard4";
    if (!is_few && !of_.everywhere) return;
    const std::string name = std::string(of_.name) + "_" + layout;
    out.push_back({of_.name, layout, make_plan(name, model, dims, schedule, of_.recipe, clusters::cpu)});
  }
  std::vector<variant> out;

 private:
  const named& of_;
};

constexpr schedules::gpipe once{1}, twice{2};

std::vector<variant> plans_of(const parameter_names& frozen) {
  std::vector<variant> all;
  for (named n : optimizers) {
    n.recipe.frozen = frozen;
    list l(n);
    l.add("one", gpt, {}, once);
    l.add("tp2", gpt, {.world = 2, .tp = 2}, once);
    l.add("tp2_sp", gpt, {.world = 2, .tp = 2, .sequence_parallel = true}, twice);
    l.add("pp2", gpt, {.world = 2, .pp = 2}, schedules::one_f_one_b{3});
    l.add("dp2", gpt, {.world = 2, .dp_replicate = 2}, once);
    l.add("shard2", gpt, {.world = 2, .dp_shard = 2}, twice);
    l.add("shard4", gpt, {.world = 4, .dp_shard = 4}, once);
    l.add("shard4_after_step", gpt, {.world = 4, .dp_shard = 4, .reshard = reshard::after_step},
          schedules::gpipe{3});
    l.add("hsdp", gpt, {.world = 4, .dp_replicate = 2, .dp_shard = 2}, once);
    l.add("shard3_tp2", gpt, {.world = 6, .dp_shard = 3, .tp = 2}, once);
    l.add("shard2_pp2", gpt, {.world = 4, .dp_shard = 2, .pp = 2}, schedules::zero_bubble_v{3});
    l.add("llama_one", llama, {}, once);
    l.add("llama_shard2_tp2", llama, {.world = 4, .dp_shard = 2, .tp = 2, .sequence_parallel = true}, once);
    all.insert(all.end(), l.out.begin(), l.out.end());
  }
  return all;
}

}  // namespace

std::vector<variant> plans() { return plans_of({}); }
std::vector<variant> plans_with_frozen_parameters() { return plans_of({"wte", "wpe", "wk", "w2"}); }

}  // namespace optimizing
