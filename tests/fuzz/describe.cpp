// SPDX-License-Identifier: Apache-2.0
#include "plan.hpp"

#include <fmt/format.h>

namespace fuzz {

namespace {

constexpr std::string_view order_names[]{"gpipe",
                                         "one_f_one_b",
                                         "looped_bfs",
                                         "interleaved_one_f_one_b",
                                         "interleaved_zero_bubble",
                                         "zero_bubble_1p",
                                         "zero_bubble_2p",
                                         "zero_bubble_v",
                                         "zero_bubble_v_greedy",
                                         "v_half",
                                         "v_min",
                                         "one_f_one_b_v",
                                         "group_interleaved",
                                         "dual_pipe",
                                         "dual_pipe_v",
                                         "best",
                                         "text"};

std::string text_of(const dim& d) {
  return d.unit == 1 ? fmt::format("{}={}", d.name, d.size)
                     : fmt::format("{}={}x{} {}", d.name, d.count(), d.unit, d.unit_name);
}

std::string start_of(const parameter& p) {
  if (p.start == initial::normal) return fmt::format("std {}", p.std);
  return p.start == initial::ones ? "ones" : "zeros";
}

std::string text_of(const parameter& p) {
  std::string out = fmt::format("    {}'{}' ({}", p.handle ? fmt::format("handle {} ", p.handle) : "", p.name,
                                text_of(p.shape[0]));
  if (p.shape.size() > 1) out += ", " + text_of(p.shape[1]);
  out += ")";
  if (!p.sharded_by.empty()) out += fmt::format(" tp along '{}'", p.sharded_by);
  return out + " " + start_of(p) + "\n";
}

std::string text_of(const layer& l) {
  std::string out;
  for (const parameter& p : l.parameters) out += text_of(p);
  for (std::size_t i = 0; i < l.steps.size(); ++i) {
    const step& s = l.steps[i];
    std::vector<std::string> arguments;
    for (int v : s.in) arguments.push_back(v ? fmt::format("v{}", v) : "x");
    for (int w : s.weights)
      arguments.push_back(fmt::format("'{}'", l.parameters[static_cast<std::size_t>(w)].name));
    if (s.number != 1) arguments.push_back(fmt::format("{}", s.number));
    if (s.scaling.by != rope_scaling::none)
      arguments.push_back(fmt::format("{} by {}", name_of(s.scaling.by), s.scaling.factor));
    if (const models::experts_of_layer& e = s.with; e.count)
      arguments.push_back(fmt::format("{} of {} experts of {}, {}{} times {}, shared {}", e.picks, e.count,
                                      e.ffn, e.router.scores == router_rule::softmax ? "softmax" : "sigmoid",
                                      e.router.normalized ? " normalized" : "", e.router.scaling,
                                      e.shared_ffn));
    if (s.seq) arguments.push_back(fmt::format("seq={}", s.seq));
    if (s.pieces != 1) arguments.push_back(fmt::format("pieces={}", s.pieces));
    out += fmt::format("    v{} = {}({})\n", i + 1, step_names[static_cast<int>(s.kind)],
                       fmt::join(arguments, ", "));
  }
  return out + (l.result ? fmt::format("    return v{}\n", l.result) : "    return x\n");
}

/// The time for which all-gathered weights are kept: layers, stages or the step.
std::string_view reshard_of(const parallel_dims& d) {
  if (reshards_after_layer(resolve(d))) return "layers";
  return d.reshard == reshard::after_stage ? "stages" : "the step";
}

std::string text_of(const parallel_dims& d) {
  std::string out = fmt::format("world={}", d.world);
  for (const named_degree& a : all_degrees)
    if (d.*a.degree != 1)
      out += d.*a.degree == infer ? fmt::format(" {}=infer", a.name)
                                  : fmt::format(" {}={}", a.name, d.*a.degree);
  if (d.dp_shard != 1) out += fmt::format(" reshard after {} prefetch={}", reshard_of(d), d.prefetch);
  if (d.cp_attention == cp_attention::ring) out += " ring";
  if (d.expert_layout == expert_layout::folded_over_replicas) out += " experts over replicas";
  if (d.expert_layout == expert_layout::independent) out += " independent experts";
  return out + (d.sequence_parallel ? " sequence_parallel" : "");
}

}  // namespace

std::string describe(const plan& p) {
  const training& t = p.recipe;
  std::string out = fmt::format("plan --seed {} --index {}{}\n  vocab={} vocab_used={}{}\n", p.seed, p.index,
                                p.rounded ? " --rounded" : "", p.model.vocab, p.model.vocab_used,
                                p.model.offers_sizes ? " with sizes" : "");
  for (const entry& e : p.model.entries)
    out += fmt::format("  {}layer '{}'\n{}", e.repeated ? fmt::format("repeat {} of ", e.count) : "",
                       e.layer.name, text_of(e.layer));
  out += fmt::format("  {}\n  {} microbatches={} stages_per_rank={}{}\n", text_of(p.dims),
                     order_names[static_cast<int>(p.schedule.by)], p.schedule.microbatches,
                     p.schedule.stages_per_rank, p.schedule.inference ? " inference" : "");
  if (p.schedule.by == order::text) out += p.schedule.text;
  if (!p.stage_layers.empty()) out += fmt::format("  stage_layers {}\n", fmt::join(p.stage_layers, ", "));
  if (const recomputation& r = t.recompute; !(r == recomputation{}))
    out +=
        fmt::format("  recompute{}{}{}{} every={}\n", r.full ? " full" : "", r.attention ? " attention" : "",
                    r.activations ? " activations" : "", r.norms ? " norms" : "", r.every);
  if (!t.frozen.all().empty()) out += fmt::format("  frozen {}\n", fmt::join(t.frozen.all(), ", "));
  if (t.lora.any())
    out += fmt::format("  lora rank={} alpha={} targets {}; trained {}\n", t.lora.rank, t.lora.alpha,
                       fmt::join(t.lora.targets.all(), ", "), fmt::join(t.lora.trained.all(), ", "));
  if (p.rounded) out += fmt::format("  linears={}\n", linear_precision_names[static_cast<int>(t.linears)]);
  out += fmt::format("  {}", t.optimizer.row->name);
  for (const hyperparameter& h : t.optimizer.row->used_hyperparameters())
    out += fmt::format(" {}={}", h.name, t.optimizer.number(h.name));
  out += "\n";
  return out +
         fmt::format("  seq={} global_batch={} lr={} weight_decay={} clip={}; one rank: microbatches={}\n",
                     t.seq, t.global_batch, t.lr, t.weight_decay, t.clip, p.one_rank_microbatches);
}

}  // namespace fuzz
