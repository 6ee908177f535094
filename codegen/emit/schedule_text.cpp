// SPDX-License-Identifier: Apache-2.0
// The schedule as text on a time grid, as PyTorch's CSV, and as a picture.
#include <fmt/format.h>

#include <cmath>
#include <rankc/schedule/timing.hpp>
#include <rankc/templates.hpp>

#include "emit.hpp"
#include "step_times.hpp"

namespace rankc::codegen {

std::string schedule_text(const plan_data& plan) {
  const action_table& table = plan.actions;
  const timing t = time(table);
  std::string out;
  for (int r = 0; r < table.ranks(); ++r) {
    out += fmt::format("rank {:<3}|", r);
    double now = 0;
    for (int i = table.begin[r]; i < table.begin[r + 1]; ++i) {
      if (!computes(table.actions[i].kind)) continue;
      for (; now < t.begin[i]; ++now) out += "    .";
      out += fmt::format("{:>5}", token(table.actions[i]));
      for (now = t.begin[i] + 1; now < t.end[i]; ++now) out += "    -";
    }
    out += "\n";
  }
  return out + fmt::format("bubble {:.1f} %, one column per forward; a backward takes two\n", 100 * t.bubble);
}

std::string schedule_csv(const plan_data& plan) {
  std::string out;
  for (int r = 0; r < plan.actions.ranks(); ++r)
    for (int i = plan.actions.begin[r]; i < plan.actions.begin[r + 1]; ++i)
      out += token(plan.actions.actions[i]) + (i + 1 < plan.actions.begin[r + 1] ? "," : "\n");
  return out;
}

std::string schedule_svg(const plan_data& plan) {
  const action_table& table = plan.actions;
  const timing t = time(table);
  constexpr int unit = 26, row = 30, left = 64, top = 34;
  constexpr std::string_view classes[]{"f", "b", "i", "w"};
  const int width = left + static_cast<int>(std::ceil(t.makespan)) * unit + 12;
  const int height = top + table.ranks() * row + 8;
  std::string boxes;
  for (int r = 0; r < table.ranks(); ++r) {
    const int y = top + r * row;
    boxes += fmt::format("<text x=\"8\" y=\"{}\">rank {}</text>\n", y + 17, r);
    boxes += fmt::format("<rect class=\"bubble\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n", left, y,
                         static_cast<int>(t.makespan * unit), row - 4);
    for (int i = table.begin[r]; i < table.begin[r + 1]; ++i) {
      const action& a = table.actions[i];
      if (!computes(a.kind)) continue;
      const int x = left + static_cast<int>(t.begin[i] * unit), w = static_cast<int>((t.end[i] - t.begin[i]) * unit);
      boxes += fmt::format("<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"><title>{}</title></rect>", classes[static_cast<int>(a.kind)],
                           x, y, w - 1, row - 4, token(a));
      boxes += fmt::format("<text class=\"m\" x=\"{}\" y=\"{}\">{}</text>\n", x + w / 2, y + 17, a.microbatch);
    }
  }
  return fill(templates::schedule_svg,
              {{"width", std::to_string(width)}, {"height", std::to_string(height)},
               {"title", fmt::format("{}: {}, {} microbatches, bubble {:.1f} %", plan.name, plan.schedule, plan.actions.microbatches, 100 * t.bubble)},
               {"boxes", boxes}});
}

}  // namespace rankc::codegen
