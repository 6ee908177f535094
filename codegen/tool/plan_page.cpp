// SPDX-License-Identifier: Apache-2.0
// The findings of a search as a page.
#include <rankc/codegen/text_template.hpp>
#include <rankc/plans_page.hpp>

#include <algorithm>
#include <cmath>

#include "plan_chart.hpp"
#include "plan_page.hpp"

namespace rankc::tool {

namespace {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (c == '<') out += "&lt;";
    else if (c == '&') out += "&amp;";
    else out += c;
  return out;
}

std::string sentence_of(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return escaped(text) + ".";
}

double tokens_per_second(const plan_request& r, const judged_plan& j) {
  return static_cast<double>(r.of.recipe.global_batch) * r.of.recipe.seq / j.time.step;
}

std::string facts_of(const plan_request& r, const judged_plan& best) {
  const auto fact = [](const std::string& number, std::string_view of) {
    return fmt::format("<div><b>{}</b><span>{}</span></div>\n", number, of);
  };
  return fact(fmt::format("{:.1f} ms", 1e3 * best.time.step), "the fastest step") +
         fact(fmt::format("{:.0f}", tokens_per_second(r, best) / r.of.gpus), "tokens a second and GPU") +
         fact(fmt::format("{:.1f} GB", static_cast<double>(best.bytes) / 1e9), "on the rank that needs most");
}

std::string legend() {
  std::string out;
  for (const step_term& t : step_terms)
    out += fmt::format("<span class=\"key\"><i class=\"{0}\"></i>{0}</span>\n", t.name);
  return out;
}

/// A bar for each plan, as long as its step.
std::string bars_of(std::span<const judged_plan> plans) {
  constexpr double left = 26, width = 880, row = 24;
  std::string out =
      fmt::format("<svg viewBox=\"0 0 1000 {}\" role=\"img\" aria-label=\"what steps are made of\">\n",
                  row * static_cast<double>(plans.size()) + 4);
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const judged_plan& j = plans[i];
    const double per_second = width / plans.back().time.step, y = row * static_cast<double>(i) + 2;
    out += fmt::format("<text class=\"faint\" x=\"0\" y=\"{:.1f}\">{}</text>\n", y + 14, i + 1);
    double x = left;
    for (const step_term& t : step_terms) {
      const double wide = std::max(0.0, j.time.*t.at) * per_second;
      if (wide >= 0.05)
        out += fmt::format(
            "<rect class=\"{}\" x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"18\"><title>{}: {:.1f} "
            "ms, {:.1f} %</title></rect>\n",
            t.name, x, y, wide, t.name, 1e3 * (j.time.*t.at), 100 * (j.time.*t.at) / j.time.step);
      x += wide;
    }
    out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{:.1f} ms<title>{}</title></text>\n", x + 8, y + 14,
                       1e3 * j.time.step, name_with_numbers(j));
  }
  return out + "</svg>\n";
}

std::string rows_of(const plan_request& r, std::span<const judged_plan> plans, bool are_winners) {
  std::string out = "<tr><th></th><th>ms</th><th>GB</th><th>tokens/s</th><th>plan</th></tr>\n";
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const judged_plan& j = plans[i];
    out += fmt::format("<tr{}><td>{}</td><td>{:.1f}</td><td>{:.1f}</td><td>{:.0f}</td><td>{}</td></tr>\n",
                       are_winners && i == 0 ? " class=\"first-row\"" : "", i + 1, 1e3 * j.time.step,
                       static_cast<double>(j.bytes) / 1e9, tokens_per_second(r, j), text_of(j.choice));
  }
  return out;
}

/// Bars to the left for constants that make the step shorter, to the right for those that make it longer.
std::string constants_of(std::span<const sensitivity> all) {
  constexpr std::size_t most_shown = 14;
  constexpr double middle = 580, half = 320, row = 22;
  const std::span<const sensitivity> shown = all.first(std::min(all.size(), most_shown));
  std::string out =
      fmt::format("<svg viewBox=\"0 0 1000 {}\" role=\"img\" aria-label=\"constants that matter most\">\n",
                  row * static_cast<double>(shown.size()) + 4);
  out += fmt::format("<line class=\"grid\" x1=\"{0}\" x2=\"{0}\" y1=\"0\" y2=\"{1}\"/>\n", middle,
                     row * static_cast<double>(shown.size()) + 4);
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const auto& [constant, percent] = shown[i];
    const double wide = half * std::abs(percent) / std::abs(shown[0].percent),
                 y = row * static_cast<double>(i) + 2;
    const bool longer = percent > 0;
    out += fmt::format(
        "<text x=\"0\" y=\"{:.1f}\">{}</text><rect class=\"{}\" x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" "
        "height=\"16\"/>",
        y + 13, constant, longer ? "longer" : "shorter", longer ? middle : middle - wide, y, wide);
    out += fmt::format(
        "<text class=\"faint\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{:+.3f} %</text>\n",
        longer ? middle + wide + 6 : middle - wide - 6, y + 13, longer ? "start" : "end", percent);
  }
  return out + "</svg>\n";
}

}  // namespace

bool is_plans_page(std::string_view beginning) {
  return codegen::has_line(beginning, templates::plans_html, "<title>");
}

std::string page_of(const plan_request& r, const plan_findings& f) {
  const std::span<const judged_plan> winners = f.shown(r);
  std::vector<judged_plan> others;  // plans of the front that are slower than the winners
  for (const judged_plan& j : f.found.front)
    if (j.time.step > winners.back().time.step) others.push_back(j);
  return codegen::fill(
      templates::plans_html,
      {{"title", escaped(text_of(r))},
       {"about", fmt::format("{} sequences of {} tokens a step; {} plans, {} of them timed, {} judged",
                             r.of.recipe.global_batch, r.of.recipe.seq, f.candidates,
                             f.found.counts.predicted, f.found.counts.judged)},
       {"facts", facts_of(r, winners.front())},
       {"plan", "The fastest: " + escaped(text_of(winners.front().choice)) + "."},
       {"why", sentence_of(f.why)},
       {"chart", chart_of(winners, f.found.front, r.of.machines.memory)},
       {"legend", legend()},
       {"bars", bars_of(winners)},
       {"winners", rows_of(r, winners, true)},
       {"others", others.empty() ? "<tr><td>no plan</td></tr>" : rows_of(r, others, false)},
       {"constants", constants_of(f.of_constants)}});
}

}  // namespace rankc::tool
