// SPDX-License-Identifier: Apache-2.0
// The plans whose programs are trained against PyTorch's losses and against each other: every line of the oracle, by
// one rank and by each kind of parallelism. Made from values, so that one generator serves them all.
#pragma once
#include <rankc/rankc.hpp>
#include <rankc/schedules/dual_pipe.hpp>
#include <rankc/schedules/dual_pipe_v.hpp>
#include <rankc/schedules/group_interleaved.hpp>
#include <rankc/schedules/interleaved_one_f_one_b.hpp>
#include <rankc/schedules/interleaved_zero_bubble.hpp>
#include <rankc/schedules/looped_bfs.hpp>
#include <rankc/schedules/one_f_one_b_v.hpp>
#include <rankc/schedules/v_half.hpp>
#include <rankc/schedules/v_min.hpp>
#include <rankc/schedules/zero_bubble_1p.hpp>
#include <rankc/schedules/zero_bubble_2p.hpp>
#include <rankc/schedules/zero_bubble_v.hpp>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

namespace programs {

using namespace rankc;

/// A line of oracles/training/torch_losses.jsonl as a plan sees it.
struct job {
  const char* name;
  bool llama;
  int layers, seq, global_batch, microbatches;  // microbatches: of the one-rank plan
  double weight_decay = 0.1, clip = 1;
};
inline constexpr job jobs[]{{"gpt2_4", false, 4, 64, 4, 1},    {"gpt2_8", false, 4, 64, 8, 1},
                            {"gpt2_16", false, 4, 64, 16, 4},  {"llama_4", true, 8, 64, 4, 1},
                            {"llama_8", true, 8, 64, 8, 1},    {"llama_16", true, 8, 64, 16, 8, 0, 0},
                            {"llama_short", true, 4, 32, 16, 1}};

/// A schedule of a user's own: GPipe on ranks in another order than the stages, 0, 2, 1, 3, ... round and round.
struct roundabout {
  int microbatches = 1, stages_per_rank = 2;
  static constexpr std::string_view name = "roundabout";
  constexpr int rank_of_stage(int stage, int pp) const {
    const int at = stage % pp;
    return at == 1 && pp > 2 ? 2 : at == 2 ? 1 : at;
  }
  constexpr void actions(int pp, int rank, auto emit) const {
    for (const action_kind kind : {action_kind::F, action_kind::B})
      for (int m = 0; m < microbatches; ++m)
        for (int n = 0; n < pp * stages_per_rank; ++n)
          if (const int s = kind == action_kind::F ? n : pp * stages_per_rank - 1 - n; rank_of_stage(s, pp) == rank)
            emit(action{kind, s, m});
  }
};

enum class order {
  gpipe, one_f_one_b, looped_bfs, interleaved, interleaved_zero_bubble, zero_bubble_1p, zero_bubble_2p, zero_bubble_v, v_half, v_min,
  one_f_one_b_v, group_interleaved, dual_pipe, dual_pipe_v, own
};
inline constexpr const char* order_names[]{
  "gpipe", "one_f_one_b", "looped_bfs", "interleaved", "interleaved_zero_bubble", "zero_bubble_1p", "zero_bubble_2p", "zero_bubble_v", "v_half",
  "v_min", "one_f_one_b_v", "group_interleaved", "dual_pipe", "dual_pipe_v", "own"};
/// Those that take any number of ranks and microbatches.
inline constexpr order orders[]{order::gpipe, order::one_f_one_b, order::looped_bfs, order::interleaved, order::interleaved_zero_bubble,
                                order::zero_bubble_1p, order::zero_bubble_2p, order::zero_bubble_v, order::v_half, order::v_min,
                                order::one_f_one_b_v, order::group_interleaved, order::dual_pipe_v, order::own};

/// Make a plan with the schedule of an order; `with` takes it.
inline plan_data scheduled(order by, int microbatches, int stages_per_rank, bool inference, const auto& with) {
  switch (by) {
    case order::gpipe: return with(schedules::gpipe{microbatches});
    case order::interleaved: return with(schedules::interleaved_one_f_one_b{microbatches, stages_per_rank});
    case order::interleaved_zero_bubble: return with(schedules::interleaved_zero_bubble{microbatches, stages_per_rank});
    case order::looped_bfs: return with(schedules::looped_bfs{microbatches, stages_per_rank, inference});
    case order::zero_bubble_1p: return with(schedules::zero_bubble_1p{microbatches});
    case order::zero_bubble_2p: return with(schedules::zero_bubble_2p{microbatches});
    case order::zero_bubble_v: return with(schedules::zero_bubble_v{microbatches});
    case order::v_half: return with(schedules::v_half{microbatches});
    case order::v_min: return with(schedules::v_min{microbatches});
    case order::one_f_one_b_v: return with(schedules::one_f_one_b_v{microbatches});
    case order::group_interleaved: return with(schedules::group_interleaved{microbatches, stages_per_rank});
    case order::dual_pipe: return with(schedules::dual_pipe{microbatches, inference});
    case order::dual_pipe_v: return with(schedules::dual_pipe_v{microbatches, inference});
    case order::own: return with(roundabout{microbatches, stages_per_rank});
    case order::one_f_one_b: break;
  }
  return with(schedules::one_f_one_b{microbatches});
}

/// A way to distribute a job. Microbatches 0: those of the job.
struct layout {
  const char* name;
  int dp, tp, pp;
  bool sequence_parallel;
  order by;
  int microbatches;
};
inline constexpr layout layouts[]{{"one", 1, 1, 1, false, order::gpipe, 0},
                                  {"dp2", 2, 1, 1, false, order::gpipe, 2},
                                  {"tp2", 1, 2, 1, false, order::gpipe, 1},
                                  {"tp2_sp", 1, 2, 1, true, order::gpipe, 2},
                                  {"pp2_gpipe", 1, 1, 2, false, order::gpipe, 4},
                                  {"pp2_1f1b", 1, 1, 2, false, order::one_f_one_b, 2},
                                  {"pp4_gpipe", 1, 1, 4, false, order::gpipe, 2},
                                  {"pp4_1f1b", 1, 1, 4, false, order::one_f_one_b, 4},
                                  {"all_gpipe", 2, 2, 2, false, order::gpipe, 2},
                                  {"all_1f1b", 2, 2, 2, true, order::one_f_one_b, 2},
                                  {"tp2_pp2", 1, 2, 2, true, order::one_f_one_b, 2},
                                  {"dp2_tp2", 2, 2, 1, false, order::gpipe, 1},
                                  {"pp2_loop", 1, 1, 2, false, order::interleaved, 4},
                                  {"pp2_zbv", 1, 1, 2, false, order::zero_bubble_v, 4},
                                  {"pp2_dual", 1, 1, 2, false, order::dual_pipe, 4},
                                  {"pp2_dual_v", 1, 1, 2, false, order::dual_pipe_v, 4}};

/// Which programs are written: on the host in f64 all but those by two axes, which are part of those by three, and
/// those of several stages on a rank, which `pipelines` has; in f32 the same but for pipelines by GPipe; for GPUs all that
/// need at most four of them, in f32, of some jobs alone where they need more than one, and in bf16 for two jobs.
inline bool is_made(const std::string& target, const job& j, const layout& l, const std::string& type) {
  const std::string name = j.name;
  const int gpus = l.dp * l.tp * l.pp;
  if (target == "host")
    return (gpus != 4 || l.pp == 4) && (l.by == order::gpipe || l.by == order::one_f_one_b) &&
           (type == "f64" || (type == "f32" && (gpus == 1 || l.by == order::one_f_one_b || l.pp == 1)));
  return gpus <= 4 && ((type == "f32" && (gpus == 1 || name == "gpt2_16" || name == "llama_8")) ||
                       (type == "bf16" && (name == "gpt2_8" || name == "llama_8")));
}

inline std::string name_of(const job& j, const layout& l) { return std::string(j.name) + "_" + l.name; }

inline plan_data make(const job& j, const layout& l, bool deterministic = false) {
  const parallel_dims dims{.world = l.dp * l.tp * l.pp, .dp_replicate = l.dp, .tp = l.tp, .pp = l.pp,
                           .sequence_parallel = l.sequence_parallel};
  const training recipe{.seq = j.seq, .global_batch = j.global_batch, .precision = f64,
                        .weight_decay = j.weight_decay, .clip = j.clip, .deterministic = deterministic};
  auto of = [&](const auto& model) {
    return scheduled(l.by, l.microbatches ? l.microbatches : j.microbatches, 2, false, [&](const auto& schedule) {
      return make_plan(name_of(j, l), model, dims, schedule, recipe, clusters::cpu);
    });
  };
  if (j.llama)
    return of(models::llama{.layers = j.layers, .hidden = 64, .heads = 8, .kv_heads = 4, .ffn = 176, .vocab = 512, .vocab_used = 500});
  return of(models::gpt2{.layers = j.layers, .hidden = 64, .heads = 4, .ffn = 256, .vocab = 512, .vocab_used = 500});
}

/// A small model on a pipeline, compared with the first of its kind, which runs on one rank.
struct pipeline {
  std::string job, layout;
  order by;
  int dp, tp, pp, microbatches, stages_per_rank = 2, layers = 8;
  bool inference = false;
};

/// Every order on 2, 3 and 4 ranks with odd numbers of microbatches, where it has them; several axes at once; forwards
/// alone; and a second model.
inline std::vector<pipeline> pipelines() {
  std::vector<pipeline> all{{"tiny_gpt2", "one", order::one_f_one_b, 1, 1, 1, 1}, {"tiny_gpt2", "here", order::interleaved, 1, 1, 1, 2}};
  for (int pp : {2, 3, 4})
    for (order by : orders)
      all.push_back({"tiny_gpt2", std::string(order_names[static_cast<int>(by)]) + "_" + std::to_string(pp), by, 1, 1, pp, pp < 4 ? 5 : 3});
  all.insert(all.end(), {{"tiny_gpt2", "dual_pipe_2", order::dual_pipe, 1, 1, 2, 2},
                         {"tiny_gpt2", "dual_pipe_4", order::dual_pipe, 1, 1, 4, 10},
                         {"tiny_gpt2", "all_interleaved", order::interleaved, 2, 2, 3, 5},
                         {"tiny_gpt2", "all_zero_bubble_v", order::zero_bubble_v, 2, 2, 2, 3},
                         {"tiny_gpt2", "all_dual_pipe", order::dual_pipe, 1, 2, 2, 6},
                         {"tiny_gpt2", "all_dual_pipe_v", order::dual_pipe_v, 2, 2, 2, 5},
                         {"tiny_gpt2", "forwards_looped_bfs", order::looped_bfs, 1, 1, 2, 5, 2, 8, true},
                         {"tiny_gpt2", "forwards_dual_pipe", order::dual_pipe, 1, 1, 2, 6, 2, 8, true},
                         {"tiny_gpt2", "forwards_dual_pipe_v", order::dual_pipe_v, 2, 1, 3, 5, 2, 8, true},
                         {"tiny_llama", "one", order::one_f_one_b, 1, 1, 1, 1},
                         {"tiny_llama", "zero_bubble_v_2", order::zero_bubble_v, 1, 1, 2, 5},
                         {"tiny_llama", "tp_zero_bubble_v", order::zero_bubble_v, 1, 2, 2, 3},
                         {"tiny_llama", "dual_pipe_4", order::dual_pipe, 1, 1, 4, 6}});
  return all;
}

inline plan_data make(const pipeline& p) {
  const parallel_dims dims{.world = p.dp * p.tp * p.pp, .dp_replicate = p.dp, .tp = p.tp, .pp = p.pp,
                           .sequence_parallel = p.dp > 1 && p.tp > 1};
  const training recipe{.seq = 8, .global_batch = 30, .precision = f64};
  auto of = [&](const auto& model) {
    return scheduled(p.by, p.microbatches, p.stages_per_rank, p.inference, [&](const auto& schedule) {
      return make_plan(p.job + "_" + p.layout, model, dims, schedule, recipe, clusters::cpu);
    });
  };
  const int layers = std::max(p.layers, p.pp * p.stages_per_rank);
  if (p.job == "tiny_llama")
    return of(models::llama{.layers = layers, .hidden = 16, .heads = 4, .kv_heads = 2, .ffn = 24, .vocab = 64});
  return of(models::gpt2{.layers = layers, .hidden = 16, .heads = 2, .ffn = 32, .vocab = 64});
}

}  // namespace programs
