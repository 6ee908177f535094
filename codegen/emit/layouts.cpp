// SPDX-License-Identifier: Apache-2.0
#include "layouts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rankc/codegen/text_template.hpp>
#include <rankc/templates.hpp>
#include <rankc/version.hpp>

#include "../passes/input_text.hpp"
#include "../passes/lanes.hpp"
#include "calls_of_step.hpp"
#include "distinct.hpp"
#include "emit.hpp"
#include "parameter_blocks.hpp"

namespace rankc::codegen {

namespace {

/// ", {rankc::rope_scaling::linear, 8, 1, 4, 8192}"
std::string scaling_row(const rope_scaling& s) {
  if (s.is_plain()) return "";
  return fmt::format(", {{rankc::rope_scaling::{}, {}, {}, {}, {}{}}}",
                     s.by == rope_scaling::none ? "none" : name_of(s.by), s.factor, s.low_freq_factor,
                     s.high_freq_factor, s.original_positions,
                     s.share == 1 ? "" : fmt::format(", {}", s.share));
}
std::string rope_rows(const pipeline_rank& r) {
  std::vector<std::string> tables;
  for (const placed_rope& t : r.arena.ropes)
    tables.push_back(fmt::format("{{{{{}}}, {}, {}, {}{}}}", t.where, t.as.positions, t.as.dim, t.as.theta,
                                 scaling_row(t.as.scaling)));
  return wrap(tables, ",", "    ");
}

std::string lane_rows(const lowered& l, const pipeline_rank& r) {
  std::vector<std::string> lanes;
  for (const lane& each : r.lanes)
    lanes.push_back(fmt::format("{{\"{}\", {}{}}}", each.name, each.computes,
                                l.rounds_reductions() && &each == &r.lanes[reduce_lane] ? ", true" : ""));
  return wrap(lanes, ",", "    ");
}

/// The rows of a pipeline coordinate's calls; empty if their work is not known.
std::string call_rows(const lowered& l, const pipeline_rank& r) {
  constexpr std::string_view kinds[]{"product", "attention", "pass", "optimizer", "communication"};
  std::string out;
  for (const calls_of_step& c : count_calls(l, r))
    out += fmt::format("\n    {{\"{}\", call_kind::{}, {}, {:.6g}, {:.6g}, {:.6g}}},", c.name,
                       kinds[static_cast<int>(c.kind)], c.count, c.operations, c.bytes, 1e3 * c.least);
  return out;
}

/// The member with the places where the evaluation program keeps logits; empty if it keeps none.
std::string logits_text(const kept_logits& k) {
  if (k.rows == 0) return "";
  return fmt::format(
      ".logits = {{.where = {{{}}}, .rows = {}, .columns = {}, .stride = {}, .microbatch = {}}}", k.where,
      k.rows, k.columns, k.stride, k.microbatch);
}

/// The coefficients of the losses of routers, as members of a routers_place.
std::string coefficients_text(const router_losses& by) {
  if (!by.any()) return "";
  return fmt::format(".balance = {}, .z = {}, ", by.balance, by.z);
}

/// The sums of routers that a step reports; null without any.
const dim* find_reported_sums(const plan_data& p) {
  for (const layer_kind& k : p.kinds)
    if (k.ops.reported >= 0) return &k.ops.values[static_cast<std::size_t>(k.ops.reported)].shape[1];
  return nullptr;
}

/// The member with the place where a step leaves router statistics, on the rank that has all microbatches,
/// and with the coefficients of router losses; else empty.
std::string routers_text(const lowered& l, const pipeline_rank& r) {
  const model_routers& of = l.plan->model.experts.routers;
  const std::string coefficients = coefficients_text(of.losses);
  const dim* const sums = find_reported_sums(*l.plan);
  if (r.arena.routers_bytes == 0 || l.plan->actions.bidirectional() || sums == nullptr)
    return coefficients.empty() ? ""
                                : fmt::format(".routers = {{.where = {{}}, {}.fails = false}}", coefficients);
  return fmt::format(".routers = {{.where = {{{}}}, .rows = {}, .experts = {}, {}.of_each_layer = {}{}{}}}",
                     r.arena.routers, sums->count(), sums->unit, coefficients,
                     of.losses.balance != 0 && of.losses.over == router_losses::each_layer,
                     find_limit(*l.plan) ? ", .limited = true" : "", of.fails() ? ", .fails = true" : "");
}

/// The first byte of an input; 0 if the rank does not have it.
std::size_t place_of(const pipeline_rank& r, const named_input& i) {
  const placed_input* const placed = r.find_input(i.name);
  return placed ? placed->where : 0;
}

/// The inputs that the model declares and the rank reads.
std::vector<placed_input> declared_inputs(const pipeline_rank& r) {
  std::vector<placed_input> all;
  for (const placed_input& i : r.inputs)
    if (i.read && text_of_input(i.is).held == holding_kind::input) all.push_back(i);
  return all;
}
std::string input_table(const pipeline_rank& r) {
  constexpr std::string_view types[]{"real", "wide", "index"}, extents[]{"token", "sequence", "step"};
  std::string rows;
  for (const placed_input& i : declared_inputs(r))
    rows += fmt::format("    {{\"{}\", {{{}}}, {}, input_type::{}, input_rows::{}, {}, {}}},\n", i.is.name,
                        i.where, i.is.width(), types[static_cast<int>(i.is.holds)],
                        extents[static_cast<int>(i.is.extent)], i.is.whole_sequences, i.is.below);
  return rows.empty() ? ""
                      : fmt::format(
                            "// name, place, numbers of a row, their type, what has a row, whether the rank "
                            "has all tokens\n// of its sequences, the limit of indices\n"
                            "constexpr input_row inputs_{}[]{{\n{}}};\n",
                            r.index, rows);
}

/// Whether a rank ends a step with the loss although it reads no targets.
bool has_loss_without_targets(const lowered& l, const pipeline_rank& r) {
  return !r.reads(inputs::targets) && (r.stages.back().last || l.sums_losses_over_pp());
}

/// Tables that pipeline coordinates share, and the indices of one coordinate's own.
struct shared_tables {
  std::vector<std::string> ropes, lanes, calls;
};
struct table_indices {
  std::size_t ropes, lanes, calls;
};

std::vector<std::string> layout_members(const lowered& l, const pipeline_rank& r, const kept_logits& logits,
                                        const shared_tables& shared, const table_indices& own,
                                        std::size_t events) {
  const arena_plan& a = r.arena;
  std::vector<std::string> all;
  const auto add = [&](std::string_view name, const auto& value) {
    all.push_back(fmt::format(".{} = {}", name, value));
  };
  const auto place = [&](std::string_view name, std::size_t at) { add(name, fmt::format("{{{}}}", at)); };
  const auto table = [&](std::string_view name, std::size_t index) {
    add(name, fmt::format("{}_{}", name, index));
  };
  const auto index = static_cast<std::size_t>(r.index);
  add("arena_bytes", a.bytes);
  place("weights", a.weights);
  place("gradients", a.gradients);
  place("first_moment", a.first_moment);
  place("second_moment", a.second_moment);
  if (l.has_working_copy()) place("working_copy", a.working_copy);
  add("parameter_count", r.parameter_elements);
  if (r.parameter_elements > r.trained_elements)
    add("frozen_count", r.parameter_elements - r.trained_elements);
  if (r.parameters.empty()) add("parameters", "{}");
  else table("parameters", index);
  if (a.ropes.empty()) add("ropes", "{}");
  else table("ropes", own.ropes);
  place("tokens", place_of(r, inputs::tokens));
  place("targets", place_of(r, inputs::targets));
  add("reads_tokens", r.reads(inputs::tokens));
  add("reads_targets", r.reads(inputs::targets));
  place("loss", a.loss);
  place("norm", a.norm);
  add("events", events);
  table("lanes", own.lanes);
  if (r.reads(inputs::starts)) {
    place("starts", place_of(r, inputs::starts));
    add("reads_starts", true);
  }
  if (has_loss_without_targets(l, r)) add("has_loss", true);
  if (!declared_inputs(r).empty()) table("inputs", index);
  for (const std::string& text : {logits_text(logits), routers_text(l, r)})
    if (!text.empty()) all.push_back(text);
  if (!shared.calls[own.calls].empty()) table("calls", own.calls);
  return all;
}

std::string text_of_tables(const std::vector<std::string>& rows, std::string_view type,
                           std::string_view name) {
  std::string out;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (!rows[i].empty()) out += fmt::format("constexpr {} {}_{}[]{{{}}};\n", type, name, i, rows[i]);
  return out;
}

}  // namespace

std::map<std::string, std::string> emit_layouts(const lowered& l, const std::vector<kept_logits>& logits,
                                                const std::vector<std::size_t>& events) {
  shared_tables shared;
  std::string inputs, layouts;
  for (const pipeline_rank& r : l.ranks) {
    const table_indices own{index_in(shared.ropes, rope_rows(r)), index_in(shared.lanes, lane_rows(l, r)),
                            index_in(shared.calls, call_rows(l, r))};
    inputs += input_table(r);
    layouts += fmt::format("    {{{}}},\n",
                           wrap(layout_members(l, r, logits[static_cast<std::size_t>(r.index)], shared, own,
                                               events[static_cast<std::size_t>(r.index)]),
                                ",", "     ", 5));
  }
  const std::string tables = parameter_blocks_text(l) + text_of_tables(shared.ropes, "rope_table", "ropes") +
                             inputs +
                             fmt::format("// Lanes: name, whether it computes{}.\n",
                                         l.rounds_reductions() ? ", whether it sends sums in bf16" : "") +
                             text_of_tables(shared.lanes, "lane_row", "lanes");
  const holes common{
      {"version", version}, {"plan", std::string(l.plan->name)}, {"plan_id", identifier(l.plan->name)}};
  holes of_layouts = common, of_calls = common;
  of_layouts.emplace_back("tables", tables);
  of_layouts.emplace_back("layouts", layouts);
  of_calls.emplace_back("tables", text_of_tables(shared.calls, "call_row", "calls"));
  return {{"layouts.hpp", fill(templates::program_layouts_hpp, of_layouts)},
          {"calls.hpp", fill(templates::program_calls_hpp, of_calls)}};
}

}  // namespace rankc::codegen
