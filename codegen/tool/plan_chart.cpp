// SPDX-License-Identifier: Apache-2.0
#include "plan_chart.hpp"

#include <algorithm>
#include <cmath>

#include "plan_request.hpp"

namespace rankc::tool {

namespace {

constexpr double chart_width = 1000, chart_height = 400, margin_left = 60, margin_right = 20, margin_top = 22,
                 margin_bottom = 46;

/// Maps numbers to positions: linearly, or logarithmically if the largest is several times the smallest.
class scale {
 public:
  scale(double least, double most, bool logarithmic, double from, double to)
      : least_(least), most_(most), logarithmic_(logarithmic), from_(from), to_(to) {}
  double at(double x) const { return from_ + (to_ - from_) * (in(x)-in(least_)) / (in(most_)-in(least_)); }
  /// Round numbers within the range.
  std::vector<double> ticks() const {
    std::vector<double> all;
    if (logarithmic_) {
      constexpr double few[]{1, 2, 5}, many[]{1, 2, 3, 4, 5, 6, 7, 8, 9};
      const std::span<const double> digits = most_ < 10 * least_ ? std::span<const double>(many) : few;
      for (double decade = std::pow(10, std::floor(std::log10(least_))); decade <= most_; decade *= 10)
        for (const double digit : digits) add(all, decade * digit);
      return all;
    }
    const double decade = std::pow(10, std::floor(std::log10((most_ - least_) / 4)));
    double step = decade;
    for (const double digit : {2.0, 5.0, 10.0})
      if ((most_ - least_) / step > 8) step = decade * digit;
    for (double x = std::ceil(least_ / step) * step; x <= most_; x += step) add(all, x);
    return all;
  }

 private:
  double in(double x) const { return logarithmic_ ? std::log(x) : x; }
  void add(std::vector<double>& all, double x) const {
    if (x >= least_ && x <= most_) all.push_back(x);
  }
  double least_, most_;
  bool logarithmic_;
  double from_, to_;
};

double milliseconds(const judged_plan& j) { return 1e3 * j.time.step; }
double gigabytes(const judged_plan& j) { return static_cast<double>(j.bytes) / 1e9; }

std::string axes_of(const scale& time, const scale& memory) {
  std::string out;
  for (const double t : time.ticks())
    out += fmt::format(
        "<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\"/><text class=\"faint\" "
        "x=\"{0:.1f}\" y=\"{3}\" text-anchor=\"middle\">{4:.6g}</text>\n",
        time.at(t), margin_top, chart_height - margin_bottom, chart_height - margin_bottom + 18, t);
  for (const double m : memory.ticks())
    out += fmt::format(
        "<line class=\"grid\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/><text class=\"faint\" "
        "x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5:.6g}</text>\n",
        margin_left, chart_width - margin_right, memory.at(m), margin_left - 8, memory.at(m) + 4, m);
  return out + fmt::format(
                   "<text class=\"faint\" x=\"{}\" y=\"{}\" text-anchor=\"end\">ms of a step</text>\n<text "
                   "class=\"faint\" x=\"{}\" y=\"14\">GB of the rank that needs most</text>\n",
                   chart_width - margin_right, chart_height - 6, margin_left);
}

std::string line_of(std::span<const judged_plan> front, const scale& time, const scale& memory) {
  std::string out = "<path class=\"front\" d=\"";
  for (std::size_t i = 0; i < front.size(); ++i) {
    const double x = time.at(milliseconds(front[i])), y = memory.at(gigabytes(front[i]));
    out += i == 0 ? fmt::format("M{:.1f} {:.1f}", x, y) : fmt::format("H{:.1f}V{:.1f}", x, y);
  }
  return out + "\"/>\n";
}

std::string point(const judged_plan& j, const scale& time, const scale& memory, std::string_view style,
                  double radius) {
  return fmt::format("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"><title>{}</title></circle>\n",
                     style, time.at(milliseconds(j)), memory.at(gigabytes(j)), radius, name_with_numbers(j));
}

}  // namespace

std::string name_with_numbers(const judged_plan& j) {
  return fmt::format("{:.1f} ms, {:.1f} GB: {}", milliseconds(j), gigabytes(j), text_of(j.choice));
}

std::string chart_of(std::span<const judged_plan> winners, std::span<const judged_plan> front,
                     long long memory) {
  const double least = milliseconds(winners.front()),
               most = std::max(milliseconds(winners.back()), milliseconds(front.back()));
  const double limit = static_cast<double>(memory) / 1e9;
  double largest = limit;
  for (const std::span<const judged_plan> plans : {winners, front})
    for (const judged_plan& j : plans) largest = std::max(largest, gigabytes(j));
  const bool wide = most > 3 * least;
  const double beside = wide ? 0.06 * least : std::max(0.05 * (most - least), 0.01 * least);
  const scale time(least - beside, wide ? most * 1.06 : most + beside, wide, margin_left,
                   chart_width - margin_right);
  const scale bytes(0, largest * 1.08, false, chart_height - margin_bottom, margin_top);
  std::string out =
      fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"step time against memory\">\n",
                  chart_width, chart_height) +
      axes_of(time, bytes);
  if (memory > 0)
    out += fmt::format(
        "<line class=\"limit\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/><text "
        "class=\"limit-name\" x=\"{1}\" y=\"{3:.1f}\" text-anchor=\"end\">a GPU has {4:.4g} GB</text>\n",
        margin_left, chart_width - margin_right, bytes.at(limit), bytes.at(limit) - 6, limit);
  out += line_of(front, time, bytes);
  for (const judged_plan& j : front) out += point(j, time, bytes, "point", 4.5);
  for (std::size_t i = winners.size(); i-- > 0;)
    out += point(winners[i], time, bytes, i == 0 ? "first" : "winner", i == 0 ? 6 : 4.5);
  return out + "</svg>\n";
}

}  // namespace rankc::tool
