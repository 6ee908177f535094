// SPDX-License-Identifier: Apache-2.0
#include "describe_inputs.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <vector>

#include "../passes/input_text.hpp"

namespace rankc::codegen {

namespace {

std::vector<named_input> declared_inputs(const plan_data& p) {
  std::vector<named_input> all;
  for (const named_input& i : p.inputs)
    if (text_of_input(i).held == holding_kind::input) all.push_back(i);
  return all;
}

constexpr std::string_view types[]{"real", "wide", "index"}, extents[]{"token", "sequence", "step"};

/// "16 numbers", "an index below 4"
std::string numbers_text(const named_input& i) {
  const std::string limit = i.below > 0 ? fmt::format(" below {}", i.below) : "";
  if (i.holds == element::index)
    return i.width() > 1 ? fmt::format("{} indices{}", i.width(), limit) : "an index" + limit;
  return i.width() > 1 ? fmt::format("{} numbers", i.width()) : "a number";
}

}  // namespace

std::string inputs_text(const plan_data& p) {
  std::string out;
  for (const named_input& i : declared_inputs(p))
    out += fmt::format("{}{}, {} of {} {}", out.empty() ? "inputs: " : "; ", i.name, numbers_text(i),
                       i.extent == input_extent::step ? "the" : "each", extents[static_cast<int>(i.extent)]);
  return out.empty() ? "" : out + "\n";
}

nlohmann::json inputs_json(const plan_data& p) {
  nlohmann::json all = nlohmann::json::array();
  for (const named_input& i : declared_inputs(p))
    all.push_back({{"name", i.name},
                   {"row_for_each", extents[static_cast<int>(i.extent)]},
                   {"width", i.width()},
                   {"type", types[static_cast<int>(i.holds)]},
                   {"below", i.below}});
  return all;
}

}  // namespace rankc::codegen
