// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/measure.hpp>

#include "steps.hpp"
#include <rankc/trainer/beginning.hpp>
#include <rankc/trainer/call_account.hpp>
#include <rankc/trainer/not_finite.hpp>
#include <rankc/trainer/run_data.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>

namespace rankc::runtime {

namespace {

constexpr int before = 3, plain = 10,
              by_calls = 5;  // steps: warm-up, timed, and timed call by call

/// Runs the steps of a run one by one.
class step_taker {
 public:
  step_taker(engine& e, const options& o, const run_state& begins, const dataset& data)
      : e_(e), where_(o.where), state_(begins), batches_(e.about(), data, begins.samples) {}

  /// Returns milliseconds; `into`, if given, receives the times of calls.
  double take(std::vector<traced>* into = nullptr) {
    set_batch(e_, batches_.next());
    const step_input in = next_input(state_);
    const auto start = std::chrono::steady_clock::now();
    const step_output out = into != nullptr ? e_.step_by_calls(in, *into) : e_.step(in);
    const double ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    ++state_.step;
    refuse_if_not_finite(e_, where_, in, out);
    return ms;
  }

 private:
  engine& e_;
  const placement& where_;
  run_state state_;
  batch_reader batches_;
};

/// The first rank of each pipeline coordinate.
std::vector<int> first_ranks(const description& about) {
  std::vector<int> first;
  for (int rank = 0; rank < about.world(); ++rank)
    if (about.ranks[static_cast<std::size_t>(rank)].pp == static_cast<int>(first.size()))
      first.push_back(rank);
  return first;
}

}  // namespace

void measure(const description& about, const install_engine& install, const options& o) {
  console say(o.speaks() && !o.json, false);
  const beginning b = begin_run(about, o, say);
  const run_data data = open_data(about, b.state, say);
  const auto e = install();
  const auto looks_on = watch_steps(*e, o);
  set_weights(*e, b, o, say);
  step_taker steps(*e, o, b.state, data.trained);
  for (int i = 0; i < before; ++i) steps.take();
  std::vector<double> ms;
  for (int i = 0; i < plain; ++i) ms.push_back(steps.take());
  std::sort(ms.begin(), ms.end());
  std::vector<traced> first;
  steps.take(&first);  // lets the target prepare for timing by calls
  std::vector<std::vector<traced>> times(by_calls);
  for (std::vector<traced>& each : times) steps.take(&each);
  if (!o.speaks()) return;

  std::vector<call_account> accounts;
  for (const int rank : first_ranks(about)) accounts.push_back(account_of(about, rank, times));
  const double median = ms[ms.size() / 2];
  if (o.json) return print_result(account_json(median, accounts) + "\n");
  say.line(
      fmt::format("measured: {} steps of {:.3f} to {:.3f} ms, half of them below {:.3f}; then {} whose calls "
                  "are timed one by one",
                  plain, ms.front(), ms.back(), median, by_calls));
  for (const call_account& a : accounts) {
    say.line("");
    say.line(fmt::format("rank {}: {:.3f} ms from its first call to its last one", a.rank, a.step_ms));
    for (const std::string& line : account_table(a)) say.line(line);
  }
}

}  // namespace rankc::runtime
