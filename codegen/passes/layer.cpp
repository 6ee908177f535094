// SPDX-License-Identifier: Apache-2.0
// Runs the passes over a layer of a plan, as the compiler does too, and names its values.
#include <fmt/format.h>

#include <rankc/codegen/body.hpp>

#include <stdexcept>

#include "names.hpp"
#include "watcher.hpp"

namespace rankc::codegen {

namespace {

std::vector<operand> operands_of(const body& b, const node& n, bool written) {
  std::vector<operand> all;
  each_operand(b, n, written, [&](const operand& o) { all.push_back(o); });
  return all;
}

precision precision_of(dtype t) {
  if (t == dtype::f64) return f64;
  return t == dtype::f32 ? f32 : bf16;
}

}  // namespace

std::vector<operand> writes_of(const body& b, const node& n) { return operands_of(b, n, true); }
std::vector<operand> reads_of(const body& b, const node& n) { return operands_of(b, n, false); }

std::vector<std::string> names_of_layer_passes() {
  std::vector<std::string> names;
  rankc::lowering::layer_program none;
  rankc::lowering::run_passes(none, trace{}, {}, {},
                              [&](std::string_view name, auto) { names.emplace_back(name); });
  return names;
}

std::string body::message(const node& n) const {
  const bool of_batch = n.over == axis::fsdp || n.over == axis::replicas,
             in_ring = n.over == axis::ring || n.over == axis::ulysses;
  return fmt::format("{}: {} of {}{}{}", name, n.row->name,
                     names.converted[static_cast<std::size_t>(n.converts)], n.again ? " again" : "",
                     of_batch || in_ring ? " over " + std::string(rankc::name(n.over)) : "");
}

body lower_layer(const plan_data& plan, const layer_form& form, const std::string& name, dtype type,
                 target to, watcher* w) {
  const auto kind = static_cast<std::size_t>(form.kind);
  const layer_kind& layer = plan.kinds[kind];
  body b;
  b.name = name;
  b.kind = kind;
  b.setting = rankc::lowering::of_form(rankc::lowering::setting_of(plan, precision_of(type), to), form);
  b.tokens_of_step = static_cast<std::int64_t>(plan.recipe.global_batch) * plan.recipe.seq;
  try {
    rankc::lowering::run_passes(b, layer.ops, rankc::lowering::local_parameters(plan.kinds, kind, plan.dims),
                                b.setting, [&](std::string_view name, auto pass) {
                                  if (w) w->over_layer(name, false, b, layer.ops);
                                  pass();
                                  if (w) w->over_layer(name, true, b, layer.ops);
                                });
  } catch (const rankc::lowering::not_lowered& n) {
    throw std::logic_error(
        n.has_kernel
            ? fmt::format("layer '{}': {} over {} is not lowered", name, n.kind->name, rankc::name(n.over))
            : fmt::format("no kernel for op '{}' in layer '{}'", n.kind->name, name));
  }
  b.names = name_layer(b, layer.ops);
  return b;
}

}  // namespace rankc::codegen
