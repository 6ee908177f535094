// SPDX-License-Identifier: Apache-2.0
#include "plans.hpp"

#include <rankc/plan/make_plan.hpp>
#include <rankc/rankc.hpp>
#include <rankc/schedules/dual_pipe.hpp>
#include <rankc/schedules/dual_pipe_v.hpp>
#include <rankc/schedules/from_csv.hpp>
#include <rankc/schedules/interleaved_one_f_one_b.hpp>
#include <rankc/schedules/zero_bubble_v.hpp>

#include "06_gated_attention.hpp"
#include "07_latent_attention.hpp"
#include "../odd/models.hpp"

namespace recomputing {

namespace {

using namespace rankc;

/// The recomputation of a job's plans. Kinds without ops in the job's layers are left out.
struct named {
  const char* name;
  recomputation of;
};
constexpr named all_of[]{{"full", {.full = true}},
                         {"full_of_second", {.full = true, .every = 2}},
                         {"attention", {.attention = true}},
                         {"activations", {.activations = true}},
                         {"norms", {.norms = true}},
                         {"kinds", {.attention = true, .activations = true, .norms = true}},
                         {"all_but_attention_of_third", {.activations = true, .norms = true, .every = 3}}};
constexpr named some_of[]{all_of[0], all_of[1], all_of[5]};

class list {
 public:
  void add(const std::string& job, const auto& model, const parallel_dims& dims, const auto& schedule,
           std::span<const named> of = some_of) {
    add(job, "kept", model, dims, schedule, {});
    for (const named& n : of) add(job, n.name, model, dims, schedule, n.of);
  }
  std::vector<variant> out;

 private:
  void add(const std::string& job, const char* what, const auto& model, const parallel_dims& dims,
           const auto& schedule, const recomputation& r) {
    const training recipe{.seq = 8, .global_batch = 12, .precision = f64, .recompute = r};
    out.push_back(
        {job, what, make_plan("again_" + job + "_" + what, model, dims, schedule, recipe, clusters::cpu)});
  }
};

constexpr parallel_dims one{}, tp2{.world = 2, .tp = 2}, pp2{.world = 2, .pp = 2},
    sp_pp2{.world = 4, .tp = 2, .pp = 2, .sequence_parallel = true}, tp_pp2{.world = 4, .tp = 2, .pp = 2},
    eight{.world = 8, .dp_replicate = 2, .tp = 2, .pp = 2, .sequence_parallel = true};
constexpr schedules::gpipe once{1};
constexpr schedules::one_f_one_b three{3};
constexpr schedules::zero_bubble_v v{3};
/// Backward is whole for some microbatches and split for others.
using mixed = schedules::from_csv<"0F0, 0F1, 0B0, 0I1, 0W1\n1F0, 1F1, 1I0, 1W0, 1B1">;

}  // namespace

std::vector<variant> plans() {
  list l;
  constexpr models::gpt2 gpt{.layers = 6, .hidden = 16, .heads = 4, .ffn = 24, .vocab = 32};
  l.add("gpt2_one", gpt, one, once, all_of);
  l.add("gpt2_eight", gpt, eight, three, all_of);
  l.add("gpt2_interleaved", gpt, pp2, schedules::interleaved_one_f_one_b{3, 2});
  l.add("gpt2_zbv", gpt, sp_pp2, v, all_of);
  l.add("gpt2_dual_pipe", gpt, tp_pp2, schedules::dual_pipe{6});
  l.add("gpt2_dual_pipe_v", gpt, eight, schedules::dual_pipe_v{6});
  l.add("gpt2_mixed", gpt, pp2, mixed{});
  l.add("gpt2_shards", gpt, {.world = 4, .dp_shard = 2, .pp = 2}, three);
  l.add("gpt2_shards_zbv", gpt, {.world = 8, .dp_shard = 2, .tp = 2, .pp = 2, .sequence_parallel = true}, v);
  l.add("gpt2_shards_kept", gpt, {.world = 4, .dp_shard = 2, .pp = 2, .reshard = reshard::after_step}, three);
  constexpr models::llama llama{.layers = 4, .hidden = 16, .heads = 4, .kv_heads = 2, .ffn = 24, .vocab = 32};
  l.add("llama_tp2", llama, tp2, three, all_of);
  l.add("llama_zbv", llama, sp_pp2, v);
  l.add("llama_dual_pipe_v", llama, tp_pp2, schedules::dual_pipe_v{6});

  const auto halved = [&](const char* job, const auto& model) {
    l.add(std::string(job) + "_zbv", model, pp2, v, std::span(all_of).first(1));
  };
  const auto odd = [&](const char* job, const auto& model) {
    l.add(std::string(job) + "_sp", model, sp_pp2, three, std::span(all_of).first(1));
    l.add(std::string(job) + "_zbv", model, tp_pp2, v, std::span(all_of).first(1));
  };
  using namespace odd;
  odd("gated", plans::gated_llama{.layers = 4, .hidden = 12, .heads = 2, .ffn = 10, .vocab = 32});
  odd("latent", plans::latent_gpt{.layers = 4,
                                  .hidden = 12,
                                  .heads = 2,
                                  .plain = 3,
                                  .turned = 4,
                                  .of_q = 5,
                                  .of_kv = 4,
                                  .ffn = 10,
                                  .vocab = 32});
  odd("softmax", make(mlp{"mlp"}, repeat{4, softmax_gate{}}));
  odd("parts", make(repeat{4, parts{}}));
  odd("attentions", make(repeat{2, two_attentions{}}, repeat{2, attention_layer{"window", 10, 2}}));
  odd("own_op", make(repeat{4, silu_mlp{}}));
  odd("losses", make(repeat{4, supervised{}}));
  halved("handed_on", make(repeat{2, identity{}}, only_bias{}, repeat{2, only_bias{}}, identity{},
                           repeat{2, bare_attention{}}));
  odd("frozen", make_bare(frozen_embedding{token_table(vocab, hidden, "frozen_wte")}, repeat{4, low_rank{}},
                          scaled_head{1}));
  return l.out;
}

}  // namespace recomputing
