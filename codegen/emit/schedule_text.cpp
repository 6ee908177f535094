// SPDX-License-Identifier: Apache-2.0
// The schedule as text on a time grid, as PyTorch's CSV, and as a picture.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <rankc/schedule/timing.hpp>
#include <rankc/templates.hpp>

#include "emit.hpp"
#include "step_times.hpp"

namespace rankc::codegen {

std::string schedule_text(const plan_data& plan) {
  const action_table& table = plan.actions;
  const timing t = time(table, plan.expected);
  std::string out;
  for (int r = 0; r < table.ranks(); ++r) {
    out += fmt::format("rank {:<3}|", r);
    std::string once;
    int now = 0;
    for (int i = table.begin[r]; i < table.begin[r + 1]; ++i) {
      const action& a = table.actions[i];
      const bool is_second = part_of(table, r, i) == part::second;
      if (!computes(a.kind)) {
        once += " " + token(a);
        continue;
      }
      for (; now < std::lround(t.begin[i]); ++now) out += "    .";
      std::string shown = token(a);
      if (a.overlaps_next) shown = "[" + shown;
      else if (is_second) shown += "]";
      out += fmt::format("{:>5}", shown);
      ++now;
      for (; !a.overlaps_next && now < std::lround(t.end[i]); ++now) out += "    -";
    }
    out += (once.empty() ? "" : " |" + once) + "\n";
  }
  return out +
         fmt::format("bubble {:.1f} %, one column per forward of an average stage; a backward takes two{}\n",
                     100 * t.bubble, has_overlaps(table) ? "; [ ] run together" : "");
}

std::string schedule_csv(const plan_data& plan) {
  const action_table& table = plan.actions;
  std::string out;
  for (int r = 0; r < table.ranks(); ++r)
    for (int i = table.begin[r], end = table.begin[r + 1]; i < end;) {
      out += item_token(table, i);
      i += table.actions[i].overlaps_next ? 2 : 1;
      out += i < end ? "," : "\n";
    }
  return out;
}

std::string schedule_svg(const plan_data& plan) {
  const action_table& table = plan.actions;
  const timing t = time(table, plan.expected);
  constexpr int unit = 26, row = 30, bar = row - 4, left = 64, top = 34, mark = 3;
  constexpr std::string_view classes[]{"f", "b", "i", "w"};
  const int end = left + static_cast<int>(std::ceil(t.makespan)) * unit,
            height = top + table.ranks() * row + 8;
  int most_steps = 0;
  std::string boxes;
  const auto box = [&](std::string_view kind, int x, int y, int width, int height, const action& a) {
    boxes += fmt::format(
        "<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"><title>{}</title></rect>", kind, x,
        y, width, height, token(a));
  };
  for (int r = 0; r < table.ranks(); ++r) {
    const int y = top + r * row;
    int steps = 0;
    boxes += fmt::format("<text x=\"8\" y=\"{}\">rank {}</text>\n", y + 17, r);
    boxes += fmt::format("<rect class=\"bubble\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n", left, y,
                         static_cast<int>(t.makespan * unit), bar);
    for (int i = table.begin[r]; i < table.begin[r + 1]; ++i) {
      const action& a = table.actions[i];
      const int x = left + static_cast<int>(t.begin[i] * unit),
                w = static_cast<int>((t.end[i] - t.begin[i]) * unit);
      const part p = part_of(table, r, i);
      if (computes(a.kind)) {
        const int top_of_half = p == part::second ? y + bar / 2 : y, tall = p == part::whole ? bar : bar / 2;
        box(classes[static_cast<int>(a.kind)], x, top_of_half, w - 1, tall, a);
        boxes += fmt::format("<text class=\"m\" x=\"{}\" y=\"{}\">{}</text>\n", x + w / 2,
                             top_of_half + tall / 2 + 4, a.microbatch);
      } else if (a.kind == action_kind::step) {
        box("o", end + 2 + (mark + 1) * steps++, y, mark, bar, a);
      } else if (a.kind != action_kind::reshard) {  // overlaps computation: below the bar
        box("c", x, y + bar, std::max(w, mark), row - bar - 1, a);
      }
    }
    most_steps = std::max(most_steps, steps);
    boxes += "\n";
  }
  return fill(templates::schedule_svg,
              {{"width", std::to_string(end + (mark + 1) * most_steps + 12)},
               {"height", std::to_string(height)},
               {"title", fmt::format("{}: {}, {} microbatches, bubble {:.1f} %", plan.name, plan.schedule,
                                     plan.actions.microbatches, 100 * t.bubble)},
               {"boxes", boxes}});
}

}  // namespace rankc::codegen
