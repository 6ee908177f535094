// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/time_table.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

namespace rankc::runtime {

namespace {

/// True if `done` is an instance of `action`: "0F3" of "0F", "2STEP" of "STEP".
bool is_one_of(std::string_view done, std::string_view action) {
  const auto digits = [](std::string_view s) {
    return std::all_of(s.begin(), s.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  };
  if (std::isdigit(static_cast<unsigned char>(action.front())) != 0)
    return done.starts_with(action) && digits(done.substr(action.size()));
  return done.ends_with(action) && digits(done.substr(0, done.size() - action.size()));
}

std::string row(std::string_view name, double measured, double predicted) {
  return fmt::format("{:<10}{:>12.2f}{:>12.2f}{:>+10.1f} %", name, measured, predicted,
                     100 * (predicted / measured - 1));
}

}  // namespace

std::vector<std::string> time_table(const description& about, std::vector<double> step_ms,
                                    std::span<const traced> times) {
  if (!about.predicted.is_known() || step_ms.empty()) return {};
  const auto middle = step_ms.begin() + static_cast<std::ptrdiff_t>(step_ms.size() / 2);
  std::nth_element(step_ms.begin(), middle, step_ms.end());
  const double took = *middle, said = about.predicted.step_ms;
  std::vector<std::string> lines{fmt::format("{:<10}{:>12}{:>12}", "ms", "measured", "predicted"),
                                 row("step", took, said)};
  for (const predicted_action& a : about.predicted.actions) {
    double sum = 0;
    int count = 0;
    for (const traced& t : times)
      if (is_one_of(t.name, a.name)) {
        sum += (t.end - t.begin) / 1e3;
        ++count;
      }
    if (count > 0) lines.push_back(row(a.name, sum / count, a.ms));
  }
  const double tokens = static_cast<double>(about.global_batch()) * about.seq;
  lines.push_back(
      fmt::format("{:<10}{:>12.0f}{:>12.0f}", "tokens/s", 1e3 * tokens / took, 1e3 * tokens / said));
  if (about.peak_flops > 0) {
    const auto mfu = [&](double ms) {
      return 100 * 1e3 * tokens / ms * about.flops_per_token / (about.peak_flops * about.world());
    };
    lines.push_back(fmt::format("{:<10}{:>12.1f}{:>12.1f}", "mfu, %", mfu(took), mfu(said)));
  }
  return lines;
}

}  // namespace rankc::runtime
