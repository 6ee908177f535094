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
  auto several = [&](const std::string& name, std::size_t where, std::size_t bytes, int count, std::string_view what) {
    if (count == 0) return;
    std::vector<std::string> at;
    for (int i = 0; i < count; ++i) at.push_back(fmt::format("{{{}}}", where + i * aligned(bytes)));
    out += fmt::format("// {} x {}: {}\n", count, readable_bytes(bytes), what);
    out += fmt::format("constexpr at {}[]{{{}}};\n", name, wrap(at, ",", "    "));
  };
  const arena_plan& a = r.arena;
  const std::size_t region = r.parameter_elements * l.wide_bytes();
  one("weights", a.weights, region, "parameters of this pipeline rank");
  one("gradients", a.gradients, region, "their gradients");
  one("first_moment", a.first_moment, region, "AdamW's m");
  one("second_moment", a.second_moment, region, "AdamW's v");
  if (l.has_working_copy())
    one("working_copy", a.working_copy, r.parameter_elements * l.real_bytes(), "the weights as the layers read them, rounded");
  const std::size_t ids = static_cast<std::size_t>(l.plan->rows) * l.plan->recipe.seq * 4 * l.plan->actions.microbatches;
  if (a.rope_bytes) one("rope_table", a.rope, a.rope_bytes, "cosines and sines of the positions");
  if (r.reads_tokens) one("ids", a.tokens, ids, "the step's tokens, by microbatch");
  if (r.reads_targets) one("targets", a.targets, ids, "their next tokens");
  one("loss", a.loss, l.wide_bytes(), "sum over the microbatches");
  one("norm", a.norm, l.wide_bytes(), "square of the gradients' norm");
  for (const stage_plan& s : r.stages) {
    const std::string n = "_" + std::to_string(s.stage);
    several("slot" + n, s.slot_at, s.slot_bytes, s.slots, "activations of a microbatch in flight");
    several("input" + n, s.input_at, s.boundary_bytes, s.inputs, "what the previous stage sends");
    several("output" + n, s.output_at, s.boundary_bytes, s.outputs, "what goes to the next stage");
    several("dy" + n, s.dy_at, s.boundary_bytes, s.dys, "gradients from the next stage");
    several("dx" + n, s.dx_at, s.boundary_bytes, s.dxs, "gradients to the previous stage");
    if (s.stage > 0 || s.outputs > 0) out += fmt::format("constexpr std::size_t boundary{} = {};\n", n, s.boundary_bytes);
  }
  several("chain", a.chain[0], a.chain_bytes, a.chains, "gradients between the layers of a stage, in turn");
  if (a.work_bytes) one("work", a.work, a.work_bytes, "temporaries of a layer");
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
