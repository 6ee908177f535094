// SPDX-License-Identifier: Apache-2.0
#include "rank_rules.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>
#include <vector>

#include "../passes/communicator_groups.hpp"

namespace rankc::codegen {

namespace {

std::string text_of(const runtime::coordinate& c) { return fmt::format("{{{}, {}}}", c.size, c.stride); }

std::string mesh_text(const runtime::rank_rule& r) {
  std::vector<std::string> members;
  for (const auto& [name, c] :
       {std::pair("pp", r.pp), {"dp", r.dp}, {"tp", r.tp}, {"cp", r.cp}, {"ep", r.ep}})
    if (c.size > 1) members.push_back(fmt::format(".{} = {}", name, text_of(c)));
  return fmt::format(
      "// Rank = {}. Each coordinate has a size and a stride.\nconstexpr rank_rule mesh{{{}}};\n",
      rank_formula(r), fmt::join(members, ", "));
}

std::string row_text(const communicator_rule& c) {
  const std::string whole =
      fmt::format("\"{}\", over::{}, \"{}\"", c.name, runtime::over_names[static_cast<int>(c.over)], c.lane);
  return c.first < 0 ? fmt::format("    {{{}}},\n", whole)
                     : fmt::format("    {{{}, \"{}\", {}, {}}},\n", whole, c.second_lane, c.first, c.second);
}

/// {"dp", {2, 4}}; {"pp"} where there is one rank along it.
std::string word_text(const runtime::place_word& w) {
  return w.at.size > 1 ? fmt::format("{{\"{}\", {}}}", w.axis, text_of(w.at))
                       : fmt::format("{{\"{}\"}}", w.axis);
}

std::string group_text(const communicator_group& g, const std::string& name) {
  std::vector<std::string> across, place;
  for (const runtime::coordinate& c : g.across)
    if (c.size > 1) across.push_back(text_of(c));
  for (const runtime::place_word& w : g.place)
    if (*w.axis != 0) place.push_back(word_text(w));
  return fmt::format("    {{.across = {{{}}}, .communicators = {},\n     .place = {{{}}}}},\n",
                     fmt::join(across, ", "), name, fmt::join(place, ", "));
}

}  // namespace

std::string rank_formula(const runtime::rank_rule& mesh, int first) {
  std::vector<std::string> terms;
  if (first > 0) terms.push_back(std::to_string(first));
  for (const auto& [name, c] :
       {std::pair("pp", mesh.pp), {"dp", mesh.dp}, {"ep", mesh.ep}, {"cp", mesh.cp}, {"tp", mesh.tp}})
    if (c.size > 1) terms.push_back(c.stride == 1 ? name : fmt::format("{} {}", c.stride, name));
  return terms.empty() ? "0" : fmt::format("{}", fmt::join(terms, " + "));
}

std::string rank_rules_text(const lowered& l) {
  std::string communicators, groups;
  for (const communicator_group& g : list_communicator_groups(l)) {
    const std::string name =
        fmt::format("along_{}", runtime::over_names[static_cast<int>(g.communicators.front().over)]);
    communicators += fmt::format("constexpr group_communicator {}[]{{\n", name);
    for (const communicator_rule& c : g.communicators) communicators += row_text(c);
    communicators += "};\n";
    groups += group_text(g, name);
  }
  std::string out = mesh_text(coordinates_of_ranks(l.plan->dims));
  if (groups.empty()) return out + "const rank_tables tables{mesh, layouts, {}};";
  out +=
      "\n// The communicators of a group of ranks: name, kind, lane. A pair also has the second rank's lane, "
      "and\n"
      "// the places of its ranks in the group.\n" +
      communicators;
  out +=
      "// The groups, in the order in which their communicators are created: the coordinates in which ranks "
      "differ,\n// and those in the communicators' names.\nconstexpr group_rule groups[]{\n" +
      groups + "};\nconst rank_tables tables{mesh, layouts, groups};";
  return out;
}

}  // namespace rankc::codegen
