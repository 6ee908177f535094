// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <rankc/codegen/intervals.hpp>
#include <rankc/templates.hpp>
#include <rankc/version.hpp>

#include "emit.hpp"

namespace rankc::codegen {

std::string emit_memory(const lowered& l, const pipeline_rank& r) {
  std::string out;
  auto one = [&](const std::string& name, std::size_t where, std::size_t bytes, std::string_view what) {
    out += fmt::format("constexpr at {}{{{}}};  // {}: {}\n", name, where, readable_bytes(bytes), what);
  };
  auto several = [&](const std::string& name, const std::vector<std::size_t>& where, std::size_t bytes, std::string_view what) {
    if (where.empty()) return;
    std::vector<std::string> at;
    for (std::size_t w : where) at.push_back(fmt::format("{{{}}}", w));
    out += fmt::format("// {} x {}: {}\n", where.size(), readable_bytes(bytes), what);
    out += fmt::format("constexpr at {}[]{{{}}};\n", name, wrap(at, ",", "    "));
  };
  auto in_a_row = [](std::size_t first, std::size_t bytes, int count) {
    std::vector<std::size_t> where;
    for (int i = 0; i < count; ++i) where.push_back(first + i * aligned(bytes));
    return where;
  };
  const arena_plan& a = r.arena;
  const std::size_t region = r.parameter_elements * l.wide_bytes();
  one("weights", a.weights, region, "parameters of this pipeline rank");
  if (l.trains()) {
    one("gradients", a.gradients, region, "their gradients");
    one("first_moment", a.first_moment, region, "AdamW's m");
    one("second_moment", a.second_moment, region, "AdamW's v");
  }
  if (l.has_working_copy())
    one("working_copy", a.working_copy, r.parameter_elements * l.real_bytes(), "the weights as the layers read them, rounded");
  const std::size_t ids = static_cast<std::size_t>(l.plan->rows) * l.plan->recipe.seq * 4 * l.plan->actions.microbatches;
  for (std::size_t t = 0; t < a.ropes.size(); ++t)
    one(rope_name(t, a.ropes.size()), a.ropes[t].where, a.ropes[t].bytes,
        fmt::format("cosines and sines of {} positions, base {}", a.ropes[t].as.positions, a.ropes[t].as.theta));
  if (r.reads_tokens) one("ids", a.tokens, ids, "the step's tokens, by microbatch");
  if (r.reads_targets) one("targets", a.targets, ids, "their next tokens");
  one("loss", a.loss, l.wide_bytes(), "sum over the microbatches");
  if (l.trains()) one("norm", a.norm, l.wide_bytes(), "square of the gradients' norm");
  for (const stage_plan& s : r.stages) {
    std::vector<std::size_t> where = s.slots;
    for (std::size_t& w : where) w += a.slots;
    several("slot_" + std::to_string(s.stage), where, s.slot_bytes, "activations of a microbatch in flight");
  }
  several("boundary", in_a_row(a.boundaries, a.boundary_bytes, a.boundary_count), a.boundary_bytes,
          "activations and gradients between stages");
  if (a.boundary_count) out += fmt::format("constexpr std::size_t boundary_bytes = {};\n", a.boundary_bytes);
  several("chain", in_a_row(a.chain[0], a.chain_bytes, a.chains), a.chain_bytes, "gradients between the layers of a stage, in turn");
  if (a.work_bytes || r.overlaps) one("work", a.work, a.work_bytes, "temporaries of a layer");
  if (r.overlaps) one("work_beside", a.work_beside, a.work_beside_bytes, "temporaries of a layer of an action that overlaps");
  out += fmt::format("constexpr std::size_t ids_bytes = {};  // tokens of a microbatch\n", ids / l.plan->actions.microbatches);
  const auto ranges = [&](const std::string& name, const std::vector<range>& list, std::string_view what) {
    if (list.empty()) return;
    std::vector<std::string> words;
    for (const range& g : list) words.push_back(fmt::format("{{{}, {}, {}}}", g.first, g.count, g.decay));
    out += fmt::format("\n// {}: first element, count, weight decay\nconstexpr range {}[]{{{}}};\n", what, name, wrap(words, ",", "    "));
  };
  ranges("squares_sharded", r.squares_sharded, "What counts in the norm on every tensor-parallel rank");
  ranges("squares_whole", r.squares_whole, "What counts in the norm once");
  ranges("updates", r.updates, "What the optimizer updates");
  return fill(templates::program_memory_hpp,
              {{"version", version}, {"plan", l.plan->name}, {"plan_id", identifier(l.plan->name)},
               {"pipeline", std::to_string(r.index)}, {"total", readable_bytes(a.bytes)}, {"places", out}});
}

}  // namespace rankc::codegen
