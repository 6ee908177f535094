// SPDX-License-Identifier: Apache-2.0
// The optimizer's call as a struct of named operands: the regions that it reads and writes, in the types that
// they are kept in.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "emit.hpp"

namespace rankc::codegen {

std::vector<std::string_view> moment_names(const lowered& l) {
  const int n = l.state().moments;
  if (n == 2) return {"first_moment", "second_moment"};
  return n == 1 ? std::vector<std::string_view>{"momentum"} : std::vector<std::string_view>{};
}

namespace {

/// "<real, wide, bf16, rounding::stochastic>", without the last ones that are the kernel's defaults.
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

/// Operands of one type share a line.
std::string operands(const lowered& l, const std::vector<std::string_view>& moments) {
  std::vector<std::pair<std::string_view, std::vector<std::string_view>>> lines{
      {l.has_bf16_weights() ? "real" : "wide", {"weights"}}};
  const auto add = [&](std::string_view type, std::string_view name) {
    if (lines.back().first != type) lines.push_back({type, {}});
    lines.back().second.push_back(name);
  };
  add("wide", "gradients");
  for (const std::string_view m : moments) add(l.has_bf16_moments() ? "bf16" : "wide", m);
  std::string out;
  for (const auto& [type, names] : lines)
    out += fmt::format("  vector<{}, Count> {};\n", type, fmt::join(names, ", "));
  return out;
}

}  // namespace

std::string emit_optimizer(const lowered& l) {
  if (!l.trains()) return "";
  const std::vector<std::string_view> moments = moment_names(l);
  std::vector<std::string> given{"on", "weights.where", "gradients.where"};
  for (const std::string_view m : moments) given.push_back(std::string(m) + ".where");
  if (moments.empty()) given.emplace_back("{}");
  given.insert(given.end(), {"norm.where", "of"});
  return fmt::format(
      "template <std::size_t Count>\nstruct {} {{\n{}  vector<wide, 1> norm;\n  std::span<const range> of;\n"
      "  void operator()(const lane& on) const {{\n    rankc::{}::{}{}({});\n  }}\n}};",
      l.optimizer(), operands(l, moments), l.target == target::cuda ? "cuda" : "host", l.optimizer(),
      kept_as(l), fmt::join(given, ", "));
}

}  // namespace rankc::codegen
