// SPDX-License-Identifier: Apache-2.0
// The plans whose programs are trained against PyTorch's losses and against each other: every line of the
// oracle, on one rank and with each kind of parallelism. They are run-time values, so that one generator
// writes all programs.
#pragma once
#include <rankc/stages/plan_data.hpp>

#include <string>
#include <vector>

namespace programs {

using namespace rankc;

/// The plan of a line of oracles/training/torch_losses.jsonl.
struct job {
  const char* name;
  bool llama;
  int layers, seq, global_batch, microbatches;  // microbatches: of the one-rank plan
  double weight_decay = 0.1, clip = 1;
};
inline constexpr job jobs[]{{"gpt2_4", false, 4, 64, 4, 1},     {"gpt2_8", false, 4, 64, 8, 1},
                            {"gpt2_16", false, 4, 64, 16, 4},   {"llama_4", true, 8, 64, 4, 1},
                            {"llama_8", true, 8, 64, 8, 1},     {"llama_16", true, 8, 64, 16, 8, 0, 0},
                            {"llama_short", true, 4, 32, 16, 1}};

/// A schedule. `own` is a user's type; `written` and `star` are texts.
enum class order {
  gpipe,
  one_f_one_b,
  looped_bfs,
  interleaved,
  interleaved_zero_bubble,
  zero_bubble_1p,
  zero_bubble_2p,
  zero_bubble_v,
  v_half,
  v_min,
  one_f_one_b_v,
  group_interleaved,
  dual_pipe,
  dual_pipe_v,
  best,
  own,
  written,
  star
};
inline constexpr const char* order_names[]{"gpipe",
                                           "one_f_one_b",
                                           "looped_bfs",
                                           "interleaved",
                                           "interleaved_zero_bubble",
                                           "zero_bubble_1p",
                                           "zero_bubble_2p",
                                           "zero_bubble_v",
                                           "v_half",
                                           "v_min",
                                           "one_f_one_b_v",
                                           "group_interleaved",
                                           "dual_pipe",
                                           "dual_pipe_v",
                                           "best",
                                           "own",
                                           "written",
                                           "star"};
/// The schedules for any number of ranks and microbatches.
inline constexpr order orders[]{order::gpipe,
                                order::one_f_one_b,
                                order::looped_bfs,
                                order::interleaved,
                                order::interleaved_zero_bubble,
                                order::zero_bubble_1p,
                                order::zero_bubble_2p,
                                order::zero_bubble_v,
                                order::v_half,
                                order::v_min,
                                order::one_f_one_b_v,
                                order::group_interleaved,
                                order::dual_pipe_v,
                                order::own};

/// A way to distribute a job. Microbatches 0: the job's.
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
                                  {"pp2_dual_v", 1, 1, 2, false, order::dual_pipe_v, 4},
                                  {"tp2_dual_v", 1, 2, 2, false, order::dual_pipe_v, 4}};
/// Pipelines of eight stages and eight microbatches; some jobs have fewer layers or sequences.
inline constexpr layout deep_layouts[]{{"pp4_zbv", 1, 1, 4, false, order::zero_bubble_v, 8},
                                       {"pp4_v_half", 1, 1, 4, false, order::v_half, 8},
                                       {"pp4_dual_v", 1, 1, 4, false, order::dual_pipe_v, 8}};

/// All layouts, with the deep ones last.
std::vector<layout> all_layouts();

/// Whether a program is generated. On the host in f64: all layouts except those along two axes, which are
/// parts of those along three, and those with several stages per rank, which `pipelines` has. On the host in
/// f32: two jobs, without GPipe pipelines. On GPUs: layouts with at most four GPUs; in f32 with several GPUs
/// for some jobs only, and in bf16 for two jobs. No deep layout whose job has fewer layers than stages.
bool is_made(const std::string& target, const job&, const layout&, const std::string& type);

/// The number of generated programs for a target and type, of all jobs or of the named ones.
int count_made(const std::string& target, const std::string& type, const std::vector<std::string>& jobs = {});

plan_data make(const job&, const layout&, bool deterministic = false);

/// A small model on a pipeline. Its losses are compared with the first pipeline of its job, which has one
/// rank.
struct pipeline {
  std::string job, layout;
  order by;
  int dp, tp, pp, microbatches, stages_per_rank = 2, layers = 8;
  bool inference = false;
};

/// Every order on 2, 3 and 4 ranks, with odd numbers of microbatches if the order allows them; several axes
/// at once; inference; and a second model.
std::vector<pipeline> pipelines();

plan_data make(const pipeline&);

}  // namespace programs
