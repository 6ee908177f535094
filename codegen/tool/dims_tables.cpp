// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <ostream>

#include "dims.hpp"

namespace rankc::tool {

namespace {

constexpr int ranks_of_example = 8, ranks_of_node = 8;

/// "0 4 8 12 16 20 24 .. 60": the group of rank 0.
std::string example(const group_shape& g) {
  std::string out = "0";
  const int n = g.size();
  for (int i = 1; i < std::min(n, ranks_of_example - (n > ranks_of_example)); ++i)
    out += fmt::format(" {}", g.at(0, i));
  if (n > ranks_of_example) out += fmt::format(" .. {}", g.at(0, n - 1));
  return out;
}

/// A line for each axis with groups of more than one rank, and one line for all others. `joins`: the axes
/// that join several, else the axes of views.
std::string table_of_groups(std::string_view heading, const layout& l, bool joins) {
  std::string out = fmt::format("{:<16} {:>10} {:>10}   group of rank 0\n", heading, "size", "stride"), alone;
  for (axis a : shown_groups(l)) {
    if ((row(a).joins != axis_set{}) != joins) continue;
    const group_shape g = l.groups(a);
    const bool is_run = std::distance(g.begin(), g.end()) == 1;
    if (g.size() == 1) alone += fmt::format("{}{}", alone.empty() ? "" : ", ", name(a));
    else
      out += fmt::format("  {:<14} {:>10} {:>10}   {}\n", name(a), g.size(),
                         is_run ? fmt::format("{}", g.begin()->stride) : "", example(g));
  }
  if (!alone.empty()) out += fmt::format("  of size 1: {}\n", alone);
  return out + "\n";
}

std::string table_of_communicators(const std::vector<planned_communicator>& plan, const layout& l) {
  std::string out = fmt::format("{:<16} {:>10} {:>10}   serve\n", "communicators", "size", "groups");
  for (std::size_t i = 0; i < plan.size(); ++i) {
    out +=
        fmt::format("  {:<14} {:>10} {:>10}   ", i, plan[i].groups.size(), plan[i].groups.count(l.ranks()));
    for (const communicator_purpose& c : plan[i].serves)
      out += fmt::format("{}{}: {}", &c == plan[i].serves.data() ? "" : "; ", name(c.over), c.what);
    out += "\n";
  }
  return out +
         fmt::format("  {} splits of the world make all {} groups\n\n", plan.size(), count_groups(l, plan));
}

}  // namespace

std::string tabulate(const dims_request& r, const layout& l) {
  return table_of_groups("axes", l, false) + table_of_groups("aliases", l, true) +
         table_of_communicators(communicators_of(r, l), l);
}

int show_dims(const json& line, std::ostream& out, std::ostream& errors) {
  report said;
  const dims_request r = read_dims(line, said);
  const std::optional<layout> l = accepts(said) ? lay_out(r, said) : std::nullopt;
  print(said, errors);
  if (!l) return 1;
  const int per_node = r.machines ? r.machines->ranks_per_node : ranks_of_node;
  out << tabulate(r, *l) << draw_nodes(*l, std::min(per_node, l->ranks()));
  return 0;
}

}  // namespace rankc::tool
