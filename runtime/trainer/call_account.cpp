// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/call_account.hpp>

#include <rankc/runtime/call_names.hpp>
#include <rankc/runtime/failure.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <utility>

namespace rankc::runtime {

namespace {

constexpr const char* columns = "{:<26}{:>8}{:>11}{:>9}{:>16}{:>10}{:>10}{:>14}{:>9}";
constexpr const char* kind_names[]{"products", "attention", "passes over memory", "optimizer",
                                   "communication"};

struct interval {
  double begin, end;
};

/// The gaps that no interval covers between the first begin and the last end. Sorts the intervals.
std::vector<interval> gaps_between(std::vector<interval>& intervals) {
  std::sort(intervals.begin(), intervals.end(),
            [](const interval& a, const interval& b) { return a.begin < b.begin; });
  std::vector<interval> gaps;
  double until = intervals.empty() ? 0 : intervals.front().begin;
  for (const interval& i : intervals) {
    if (i.begin > until) gaps.push_back({until, i.begin});
    until = std::max(until, i.end);
  }
  return gaps;
}

/// Finds the call on another lane that ends last in a gap, and charges it the time from the gap's begin to
/// that end: the compute lanes waited for it. `each` converts the gap's unit into milliseconds of an average
/// step.
void add_awaited(const interval& gap, const std::map<double, measured_calls*>& ends_beside, double each) {
  const auto after = ends_beside.upper_bound(gap.end);
  if (after == ends_beside.begin()) return;
  const auto& [end, last] = *std::prev(after);
  if (end > gap.begin) last->awaited += (end - gap.begin) * each;
}

/// The sums of a table line: calls with one name, or of one kind. Operations, bytes and least times are added
/// only for calls that were timed.
struct sum {
  int count = 0;
  double ms = 0, beside = 0, operations = 0, bytes = 0, least_ms = 0;
  void add(const measured_calls& c) {
    count += c.of->count;
    ms += c.ms;
    beside += c.beside;
    if (c.ms + c.beside > 0) {
      operations += c.of->operations;
      bytes += c.of->bytes;
      least_ms += c.of->least_ms;
    }
  }
  double all() const { return ms + beside; }
};

std::string number(double x, int digits) { return x > 0 ? fmt::format("{:.{}f}", x, digits) : "-"; }

std::string line(const std::string& name, const sum& s, double step_ms) {
  const double seconds = s.all() / 1e3;
  const auto rate = [&](double units) { return seconds > 0 ? units / seconds : 0; };
  const auto percent = [](double part, double whole) {
    return part > 0 ? fmt::format("{:.1f} %", 100 * part / whole) : "-";
  };
  const double speed = rate(s.operations) / 1e12;
  return fmt::format(columns, name, s.count, number(s.ms, 3), percent(s.ms, step_ms), number(s.beside, 3),
                     number(speed, speed < 1 ? 3 : 1), number(rate(s.bytes) / 1e9, 1), number(s.least_ms, 3),
                     percent(s.least_ms, s.all()));
}

}  // namespace

call_account account_of(const description& about, int rank, std::span<const std::vector<traced>> steps) {
  const layout& where = layout_of(about, rank);
  call_account account{.rank = rank, .step_ms = 0, .idle_ms = 0, .calls = {}};
  std::map<std::string, std::size_t> by_name;
  for (const call_row& row : where.calls) {
    by_name[row.name] = account.calls.size();
    account.calls.push_back({&row});
  }
  const double each = 1e-3 / static_cast<double>(steps.size());
  for (const std::vector<traced>& step : steps) {
    std::vector<interval> computing;
    std::map<double, measured_calls*> ends_beside;
    double first = 0, last = 0;
    for (const traced& t : step) {
      if (t.rank != rank) continue;
      const std::string name = word_of(t.name);
      const auto at = by_name.find(name);
      if (at == by_name.end())
        throw failure(70, "RC6010: rank {} has timed the call {}, which its program's table does not have",
                      rank, name);
      measured_calls& of = account.calls[at->second];
      first = last == 0 ? t.begin : std::min(first, t.begin);
      last = std::max(last, t.end);
      const bool computes = where.lanes[static_cast<std::size_t>(t.lane)].computes;
      if (computes) computing.push_back({t.begin, t.end});
      else ends_beside[t.end] = &of;
      (computes ? of.ms : of.beside) += (t.end - t.begin) * each;
    }
    account.step_ms += (last - first) * each;
    for (const interval& gap : gaps_between(computing)) {
      account.idle_ms += (gap.end - gap.begin) * each;
      add_awaited(gap, ends_beside, each);
    }
  }
  return account;
}

std::vector<std::string> account_table(const call_account& account) {
  std::vector<std::string> lines{fmt::format(columns, "", "calls", "ms", "share", "overlapped, ms", "TFLOP/s",
                                             "GB/s", "roofline, ms", "reached")};
  std::map<call_kind, sum> kinds;
  for (const measured_calls& c : account.calls) kinds[c.of->kind].add(c);
  std::vector<std::pair<call_kind, sum>> longest(kinds.begin(), kinds.end());
  std::stable_sort(longest.begin(), longest.end(),
                   [](const auto& a, const auto& b) { return a.second.all() > b.second.all(); });
  std::vector<measured_calls> calls = account.calls;
  std::stable_sort(calls.begin(), calls.end(), [](const measured_calls& a, const measured_calls& b) {
    return a.ms + a.beside > b.ms + b.beside;
  });
  for (const auto& [kind, all] : longest) {
    lines.push_back(line(kind_names[static_cast<int>(kind)], all, account.step_ms));
    for (const measured_calls& c : calls) {
      sum one;
      if (c.of->kind == kind) {
        one.add(c);
        lines.push_back(line(fmt::format("  {}", c.of->name), one, account.step_ms));
      }
    }
  }
  const auto idle = [&](const std::string& name, double ms) {
    lines.push_back(fmt::format("{:<34}{:>11.3f}{:>7.1f} %", name, ms, 100 * ms / account.step_ms));
  };
  idle("no call", account.idle_ms);
  std::stable_sort(calls.begin(), calls.end(),
                   [](const measured_calls& a, const measured_calls& b) { return a.awaited > b.awaited; });
  for (const measured_calls& c : calls)
    if (c.awaited > 0) idle(fmt::format("  until {} ends", c.of->name), c.awaited);
  return lines;
}

std::string account_json(double step_ms, std::span<const call_account> accounts) {
  nlohmann::ordered_json ranks = nlohmann::ordered_json::array();
  for (const call_account& a : accounts) {
    nlohmann::ordered_json calls = nlohmann::ordered_json::array();
    for (const measured_calls& c : a.calls)
      calls.push_back({{"call", c.of->name},
                       {"kind", kind_names[static_cast<int>(c.of->kind)]},
                       {"count", c.of->count},
                       {"ms", c.ms},
                       {"beside_ms", c.beside},
                       {"awaited_ms", c.awaited},
                       {"operations", c.of->operations},
                       {"bytes", c.of->bytes},
                       {"least_ms", c.of->least_ms}});
    ranks.push_back({{"rank", a.rank}, {"step_ms", a.step_ms}, {"idle_ms", a.idle_ms}, {"calls", calls}});
  }
  return nlohmann::ordered_json{{"step_ms", step_ms}, {"ranks", ranks}}.dump();
}

}  // namespace rankc::runtime
