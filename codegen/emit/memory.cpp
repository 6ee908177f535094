// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <rankc/codegen/intervals.hpp>
#include <rankc/templates.hpp>
#include <rankc/version.hpp>

#include "emit.hpp"

namespace rankc::codegen {

namespace {

/// What goes between stages, by address, with the actions between which it lies there.
std::string values(const step& s) {
  std::vector<const placed_value*> sorted;
  for (const placed_value& v : s.values)
    if (!v.name.empty()) sorted.push_back(&v);
  std::stable_sort(sorted.begin(), sorted.end(), [](const placed_value* x, const placed_value* y) {
    return std::pair(x->where, x->first) < std::pair(y->where, y->first);
  });
  std::string out;
  for (const placed_value* v : sorted) out += fmt::format("constexpr at {}{{{}}};  // {}\n", v->name, v->where, v->lives);
  return out;
}
std::string between_stages(const pipeline_rank& r) {
  std::string out = values(r.train);
  if (const std::string evaluation = values(r.evaluate); !evaluation.empty()) out += "namespace evaluation {\n" + evaluation + "}  // namespace evaluation\n";
  return out;
}

}  // namespace

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
  for (const pool& p : a.pools)
    out += fmt::format("\n// {} x {} from {}: {}\n", p.count, readable_bytes(p.unit), p.where, kept_names[static_cast<int>(p.what)]) +
           (p.what == kept::activation ? between_stages(r) : "");
  out += "\n";
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
