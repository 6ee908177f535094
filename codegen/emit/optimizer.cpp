// SPDX-License-Identifier: Apache-2.0
// Emits the optimizer's call as a struct of named operands: the regions that it reads and writes, with their
// types.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "emit.hpp"

namespace rankc::codegen {

namespace {

/// "<real, wide, bf16, rounding::stochastic>", without trailing arguments that equal the kernel's defaults.
std::string kept_as(const lowered& l) {
  const bool narrow_weights = l.has_bf16_weights(), narrow_moments = l.has_bf16_moments(),
             none = l.state().moments == 0;
  const std::string_view moment = narrow_moments ? "bf16" : "wide";
  std::string out = "<real";
  if (narrow_weights || narrow_moments || none)
    out += fmt::format(", {}, {}", narrow_weights ? "real" : "wide", none ? "no_moment" : moment);
  if ((narrow_weights || narrow_moments) && l.plan->recipe.rounding == stochastic)
    out += ", rounding::stochastic";
  return out + ">";
}

/// The operands. Those of one type share a line.
std::string operands(const lowered& l) {
  std::vector<std::pair<std::string_view, std::vector<std::string_view>>> lines{
      {l.has_bf16_weights() ? "real" : "wide", {"weights"}}};
  const auto add = [&](std::string_view type, std::string_view name) {
    if (lines.back().first != type) lines.push_back({type, {}});
    lines.back().second.push_back(name);
  };
  add("wide", "gradients");
  for (const moment& m : l.plan->recipe.optimizer.moments())
    add(l.has_bf16_moments() ? "bf16" : "wide", m.name);
  std::string out;
  for (const auto& [type, names] : lines)
    out += fmt::format("  vector<{}, Count> {};\n", type, fmt::join(names, ", "));
  return out;
}

/// The hyperparameters of a row, in its order, if a step_input lacks one of them; else empty.
std::string numbers(const lowered& l) {
  if (!l.optimizer().has_own_hyperparameters()) return "";
  std::vector<std::string_view> names;
  std::vector<double> values;
  for (const hyperparameter& h : l.optimizer().used_hyperparameters()) {
    names.push_back(h.name);
    values.push_back(l.plan->recipe.optimizer.number(h.name));
  }
  return fmt::format("  static constexpr double numbers[]{{{}}};  // {}\n", fmt::join(values, ", "),
                     fmt::join(names, ", "));
}

std::string kernel_of(const lowered& l) {
  const optimizer_row& row = l.optimizer();
  if (!row.kernel.empty()) return std::string(row.kernel);
  return fmt::format("rankc::{}::{}", l.target == target::cuda ? "cuda" : "host", row.name);
}

}  // namespace

std::string emit_optimizer(const lowered& l) {
  if (!l.trains()) return "";
  const optimizer_row& row = l.optimizer();
  std::vector<std::string> given{"on", "weights.where", "gradients.where"};
  for (const moment& m : row.used_moments())
    given.push_back(l.state().moments > 0 ? fmt::format("{}.where", m.name) : "{}");
  given.insert(given.end(), {"norm.where", "of"});
  if (row.has_own_hyperparameters()) given.emplace_back("numbers");
  return fmt::format(
      "template <std::size_t Count>\nstruct {} {{\n{}{}  vector<wide, 1> norm;\n  std::span<const range> "
      "of;\n"
      "  void operator()(const lane& on) const {{\n    {}{}({});\n  }}\n}};",
      row.name, numbers(l), operands(l), kernel_of(l), kept_as(l), fmt::join(given, ", "));
}

}  // namespace rankc::codegen
