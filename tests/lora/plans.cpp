// SPDX-License-Identifier: Apache-2.0
#include "plans.hpp"

#include "../families/plan_list.hpp"

#include <rankc/schedules/dual_pipe.hpp>
#include <rankc/schedules/dual_pipe_v.hpp>
#include <rankc/schedules/from_csv.hpp>
#include <rankc/schedules/interleaved_one_f_one_b.hpp>
#include <rankc/schedules/zero_bubble_v.hpp>

#include "06_gated_attention.hpp"

namespace adapting {

namespace {

using namespace rankc;

constexpr parallel_dims one{}, tp2{.world = 2, .tp = 2}, sp{.world = 2, .tp = 2, .sequence_parallel = true},
    dp2{.world = 2, .dp_replicate = 2}, pp2{.world = 2, .pp = 2}, tp_pp2{.world = 4, .tp = 2, .pp = 2},
    eight{.world = 8, .dp_replicate = 2, .tp = 2, .pp = 2, .sequence_parallel = true},
    shards{.world = 2, .dp_shard = 2}, kept_shards{.world = 2, .dp_shard = 2, .reshard = reshard::after_step},
    hybrid{.world = 8, .dp_replicate = 2, .dp_shard = 2, .pp = 2},
    shards_sp_pp2{.world = 8, .dp_shard = 2, .tp = 2, .pp = 2, .sequence_parallel = true};
constexpr schedules::gpipe once{1}, twice{2};
constexpr schedules::one_f_one_b three{3};
constexpr schedules::zero_bubble_v v{3};
/// Backward is whole for some microbatches and split for others.
using mixed = schedules::from_csv<"0F0, 0F1, 0B0, 0I1, 0W1\n1F0, 1F1, 1I0, 1W0, 1B1">;

class list : public plan_list {
 public:
  list() : plan_list("lora", {}) {}
  void add(const std::string& job, const char* layout, const auto& model, training r,
           const parallel_dims& dims, const auto& schedule) {
    r.seq = 8;
    r.global_batch = 12;
    r.precision = f64;
    plan_list::add(job, layout, model, dims, schedule, r);
  }
  void add_layouts(const std::string& job, const auto& model, const training& r) {
    add(job, "one", model, r, one, once);
    add(job, "tp2", model, r, tp2, twice);
    add(job, "sp", model, r, sp, once);
    add(job, "dp2", model, r, dp2, twice);
    add(job, "pp2", model, r, pp2, three);
    add(job, "tp2_pp2", model, r, tp_pp2, three);
    add(job, "eight", model, r, eight, three);
    add(job, "shards", model, r, shards, twice);
    add(job, "kept_shards", model, r, kept_shards, twice);
    add(job, "hybrid", model, r, hybrid, three);
    add(job, "zbv", model, r, tp_pp2, v);
  }
  /// The same with recomputation, and with other schedules.
  void add_more(const std::string& job, const auto& model, training r) {
    add(job, "mixed", model, r, pp2, mixed{});
    add(job, "loop", model, r, pp2, schedules::interleaved_one_f_one_b{4, 2});
    add(job, "dual", model, r, tp_pp2, schedules::dual_pipe{4});
    add(job, "dual_v", model, r, tp_pp2, schedules::dual_pipe_v{6});
    add(job, "shards_sp_pp2", model, r, shards_sp_pp2, three);
    r.recompute = {.full = true};
    add(job, "full", model, r, one, twice);
    add(job, "full_zbv", model, r, tp_pp2, v);
    r.recompute = {.activations = true, .every = 2};
    add(job, "activations", model, r, sp, twice);
  }
};

}  // namespace

std::vector<split_plan> plans() {
  list l;
  constexpr models::gpt2 gpt{.layers = 4, .hidden = 16, .heads = 4, .ffn = 24, .vocab = 32};
  constexpr models::llama llama{.layers = 4, .hidden = 16, .heads = 4, .kv_heads = 2, .ffn = 24, .vocab = 32};
  constexpr ::plans::gated_llama gated{.layers = 4, .hidden = 12, .heads = 2, .ffn = 10, .vocab = 32};
  constexpr training all{.seq = 8, .global_batch = 12};
  training r = all;
  l.add("gpt2_dense", "one", gpt, all, one, once);
  l.add("llama_dense", "one", llama, all, one, once);
  l.add("gated_dense", "one", gated, all, one, once);
  r.lora = {.rank = 2, .alpha = 5, .targets = {"wq", "wv", "wo", "w1", "w2"}};
  l.add_layouts("gpt2", gpt, r);
  l.add_more("gpt2", gpt, r);
  r.lora = {.rank = 4, .alpha = 10, .targets = {"wq", "w2", "lm_head"}, .trained = {"norm", "norm2"}};
  l.add_layouts("llama", llama, r);
  r.lora = {.rank = 3, .alpha = 7.5, .targets = {"wk", "wg", "wo"}};
  l.add_layouts("gated", gated, r);
  r = all;
  r.frozen = {"wte", "wpe", "wk", "norm2", "norm2.bias"};
  l.add_layouts("frozen", gpt, r);
  r.frozen = {"wte", "norm1", "wq", "wk", "wv", "wo", "norm2", "w1", "w2", "w3"};
  l.add_layouts("probe", llama, r);
  l.add(
      "probe", "full", llama,
      [&] {
        training again = r;
        again.recompute = {.full = true};
        return again;
      }(),
      pp2, three);
  return l.out;
}

}  // namespace adapting
