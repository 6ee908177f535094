// SPDX-License-Identifier: Apache-2.0
#include "plans.hpp"

#include <rankc/plan/make_plan.hpp>
#include <rankc/rankc.hpp>
#include <rankc/schedules/best.hpp>
#include <rankc/schedules/dual_pipe.hpp>
#include <rankc/schedules/dual_pipe_v.hpp>
#include <rankc/schedules/from_csv.hpp>
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

namespace programs {

namespace {

/// A user's schedule: GPipe with stages on ranks in the order 0, 2, 1, 3, ..., repeated.
struct roundabout {
  int microbatches = 1, stages_per_rank = 2;
  static constexpr std::string_view name = "roundabout";
  constexpr int rank_of_stage(int stage, int pp) const {
    const int at = stage % pp;
    if (at == 1 && pp > 2) return 2;
    return at == 2 ? 1 : at;
  }
  constexpr void actions(int pp, int rank, auto emit) const {
    for (const action_kind kind : {action_kind::F, action_kind::B})
      for (int m = 0; m < microbatches; ++m)
        for (int n = 0; n < pp * stages_per_rank; ++n)
          if (const int s = kind == action_kind::F ? n : pp * stages_per_rank - 1 - n;
              rank_of_stage(s, pp) == rank)
            emit(action{kind, s, m});
  }
};

/// A schedule text with every kind of action: an overlapped pair, gathered weights, reductions and steps.
using written = schedules::from_csv<
    "0UNSHARD, 0F0, 0F1, 0B0, 0F2, 0B1, 0B2, 0RESHARD, 0REDUCE_GRAD, 0STEP\n"
    "1F0, OVERLAP(1F1,1B0), OVERLAP(1F2,1B1), 1B2, 1REDUCE_GRAD, 1STEP">;

/// A schedule text in which rank 0 sends to each of the other three ranks, and receives from each.
using star = schedules::from_csv<
    "0F0, 0F1, 2F0, 2F1, 4F0, 4F1, 4B0, 4B1, 2B0, 2B1, 0B0, 0B1\n"
    "1F0, 1F1, 6F0, 6F1, 6B0, 6B1, 1B0, 1B1\n"
    "3F0, 3F1, 7F0, 7F1, 7B0, 7B1, 3B0, 3B1\n"
    "5F0, 5F1, 5B0, 5B1">;

/// A schedule's actions for a number of ranks as a schedule, so that all schedules here have one type.
struct collected {
  int microbatches, stages_per_rank;
  std::string_view name;
  action_table emitted;
  action_table table(int) const { return emitted; }
  int stages(int) const { return emitted.stages(); }
};

collected collect_for(int pp, const auto& schedule) {
  return {schedule.microbatches, schedule.stages_per_rank, schedule.name, collect(schedule, pp)};
}

collected schedule_of(order by, int pp, int microbatches, int stages_per_rank, bool inference) {
  switch (by) {
    case order::gpipe:
      return collect_for(pp, schedules::gpipe{microbatches});
    case order::interleaved:
      return collect_for(pp, schedules::interleaved_one_f_one_b{microbatches, stages_per_rank});
    case order::interleaved_zero_bubble:
      return collect_for(pp, schedules::interleaved_zero_bubble{microbatches, stages_per_rank});
    case order::looped_bfs:
      return collect_for(pp, schedules::looped_bfs{microbatches, stages_per_rank, inference});
    case order::zero_bubble_1p:
      return collect_for(pp, schedules::zero_bubble_1p{microbatches});
    case order::zero_bubble_2p:
      return collect_for(pp, schedules::zero_bubble_2p{microbatches});
    case order::zero_bubble_v:
      return collect_for(pp, schedules::zero_bubble_v{microbatches});
    case order::v_half:
      return collect_for(pp, schedules::v_half{microbatches});
    case order::v_min:
      return collect_for(pp, schedules::v_min{microbatches});
    case order::one_f_one_b_v:
      return collect_for(pp, schedules::one_f_one_b_v{microbatches});
    case order::group_interleaved:
      return collect_for(pp, schedules::group_interleaved{microbatches, stages_per_rank});
    case order::dual_pipe:
      return collect_for(pp, schedules::dual_pipe{microbatches, inference});
    case order::dual_pipe_v:
      return collect_for(pp, schedules::dual_pipe_v{microbatches, inference});
    case order::best:
      return collect_for(pp, schedules::best{microbatches, stages_per_rank});
    case order::written:
      return collect_for(pp, written{});
    case order::star:
      return collect_for(pp, star{});
    case order::own:
      return collect_for(pp, roundabout{microbatches, stages_per_rank});
    case order::one_f_one_b:
      break;
  }
  return collect_for(pp, schedules::one_f_one_b{microbatches});
}

}  // namespace

std::vector<layout> all_layouts() {
  std::vector<layout> all(std::begin(layouts), std::end(layouts));
  all.insert(all.end(), std::begin(deep_layouts), std::end(deep_layouts));
  return all;
}

bool is_made(const std::string& target, const job& j, const layout& l, const std::string& type) {
  const std::string name = j.name;
  const int gpus = l.dp * l.tp * l.pp;
  const bool lone_stages = l.by == order::gpipe || l.by == order::one_f_one_b;
  if (j.layers < l.pp * (lone_stages ? 1 : 2)) return false;
  if (target == "host")
    return (gpus != 4 || l.pp == 4) && lone_stages &&
           (type == "f64" || (type == "f32" && (name == "gpt2_8" || name == "llama_8") &&
                              (gpus == 1 || l.by == order::one_f_one_b || l.pp == 1)));
  return gpus <= 4 && ((type == "f32" && (gpus == 1 || name == "gpt2_16" || name == "llama_8")) ||
                       (type == "bf16" && (name == "gpt2_8" || name == "llama_8")));
}

int count_made(const std::string& target, const std::string& type, const std::vector<std::string>& names) {
  int made = 0;
  for (const job& j : jobs)
    for (const layout& l : all_layouts())
      made +=
          (names.empty() || std::count(names.begin(), names.end(), j.name)) && is_made(target, j, l, type);
  return made;
}

plan_data make(const job& j, const layout& l, bool deterministic) {
  const parallel_dims dims{.world = l.dp * l.tp * l.pp,
                           .dp_replicate = l.dp,
                           .tp = l.tp,
                           .pp = l.pp,
                           .sequence_parallel = l.sequence_parallel};
  const training recipe{.seq = j.seq,
                        .global_batch = j.global_batch,
                        .precision = f64,
                        .weight_decay = j.weight_decay,
                        .clip = j.clip,
                        .deterministic = deterministic};
  auto of = [&](const auto& model) {
    const collected schedule =
        schedule_of(l.by, l.pp, l.microbatches ? l.microbatches : j.microbatches, 2, false);
    return make_plan(std::string(j.name) + "_" + l.name, model, dims, schedule, recipe, clusters::cpu);
  };
  if (j.llama)
    return of(models::llama{.layers = j.layers,
                            .hidden = 64,
                            .heads = 8,
                            .kv_heads = 4,
                            .ffn = 176,
                            .vocab = 512,
                            .vocab_used = 500});
  return of(models::gpt2{
      .layers = j.layers, .hidden = 64, .heads = 4, .ffn = 256, .vocab = 512, .vocab_used = 500});
}

std::vector<pipeline> pipelines() {
  std::vector<pipeline> all{{"tiny_gpt2", "one", order::one_f_one_b, 1, 1, 1, 1},
                            {"tiny_gpt2", "here", order::interleaved, 1, 1, 1, 2}};
  for (int pp : {2, 3, 4})
    for (order by : orders)
      all.push_back({"tiny_gpt2", std::string(order_names[static_cast<int>(by)]) + "_" + std::to_string(pp),
                     by, 1, 1, pp, pp < 4 ? 5 : 3});
  all.insert(all.end(), {{"tiny_gpt2", "best", order::best, 1, 1, 3, 5},
                         {"tiny_gpt2", "written", order::written, 1, 1, 2, 3},
                         {"tiny_gpt2", "star", order::star, 1, 1, 4, 2},
                         {"tiny_gpt2", "dual_pipe_2", order::dual_pipe, 1, 1, 2, 2},
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

plan_data make(const pipeline& p) {
  const parallel_dims dims{.world = p.dp * p.tp * p.pp,
                           .dp_replicate = p.dp,
                           .tp = p.tp,
                           .pp = p.pp,
                           .sequence_parallel = p.dp > 1 && p.tp > 1};
  const training recipe{.seq = 8, .global_batch = 30, .precision = f64};
  auto of = [&](const auto& model) {
    const collected schedule = schedule_of(p.by, p.pp, p.microbatches, p.stages_per_rank, p.inference);
    return make_plan(p.job + "_" + p.layout, model, dims, schedule, recipe, clusters::cpu);
  };
  const int layers = std::max(p.layers, p.pp * p.stages_per_rank);
  if (p.job == "tiny_llama")
    return of(
        models::llama{.layers = layers, .hidden = 16, .heads = 4, .kv_heads = 2, .ffn = 24, .vocab = 64});
  return of(models::gpt2{.layers = layers, .hidden = 16, .heads = 2, .ffn = 32, .vocab = 64});
}

}  // namespace programs
