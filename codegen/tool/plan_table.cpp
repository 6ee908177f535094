// SPDX-License-Identifier: Apache-2.0
#include <ostream>

#include "plan_findings.hpp"
#include "plan_progress.hpp"

namespace rankc::tool {

namespace {

void print_rows(std::ostream& out, std::span<const judged_plan> plans) {
  if (plans.empty()) return;
  out << "        ms     GB ";
  for (const step_term& t : step_terms) out << " " << t.name;
  out << "  plan\n";
  for (const judged_plan& j : plans) {
    out << fmt::format("{:>10.1f} {:>6.1f} ", 1e3 * j.time.step, static_cast<double>(j.bytes) / 1e9);
    for (const step_term& t : step_terms)
      out << fmt::format(" {:>{}.0f}%", 100 * (j.time.*t.at) / j.time.step, t.name.size() - 1);
    out << "  " << text_of(j.choice) << "\n";
  }
}

}  // namespace

std::string text_of(std::span<const sensitivity> of_constants) {
  constexpr std::size_t shown = 3;
  const std::size_t n = std::min(shown, of_constants.size());
  std::string out = "1 % more of a constant changes the step most for";
  for (std::size_t i = 0; i < n; ++i) {
    if (i > 0) out += i + 1 == n ? " and" : ",";
    out += fmt::format(" {} ({:+.2f} %)", of_constants[i].constant, of_constants[i].percent);
  }
  return out;
}

int show_plans(const json& line, std::ostream& out, std::ostream& errors, bool on_terminal) {
  report said;
  const plan_request r = read_plan_request(line, said);
  std::optional<judged_plan> predicted;
  if (accepts(said) && r.predict) predicted = judge(r.of, *r.predict, said);
  print(said, errors);
  if (!accepts(said)) return 1;
  if (predicted) {
    print_rows(out, {&*predicted, 1});
    return 0;
  }
  progress_line progress(errors, on_terminal);
  const plan_findings f = find_plans(r, false, progress.hears());
  progress.clear();
  out << fmt::format("{}: {} plans, {} of them timed, {} judged\n", text_of(r), f.candidates,
                     f.found.counts.predicted, f.found.counts.judged);
  print_rows(out, f.shown(r));
  if (!f.found.top.empty()) out << "\n";
  out << f.why << "\n";
  if (!f.of_constants.empty()) out << text_of(f.of_constants) << "\n";
  return 0;
}

}  // namespace rankc::tool
