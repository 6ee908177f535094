// SPDX-License-Identifier: Apache-2.0
#include "held_out_share.hpp"

#include <rankc/runtime/failure.hpp>

#include <fmt/format.h>
#include <algorithm>

namespace rankc::runtime {
namespace {

/// True if the part to hold out of a source has never been trained on.
bool may_hold_out(const resumed_source& s, const source_record& now, const known_data& known) {
  if (!s.source.has_files()) return true;
  if (s.known != nullptr) return now.place.held_from.has_value();
  return !known.has_trained_on(s.source, s.files);
}

void refuse_other_share(const options& o, const run_state& saved, const data_record& record) {
  const bool holds_out = std::any_of(record.sources.begin(), record.sources.end(),
                                     [](const source_record& r) { return r.place.held_from.has_value(); });
  if (o.eval_fraction && *o.eval_fraction != saved.eval_fraction && holds_out)
    throw failure(
        2,
        "RC6188: --eval-fraction {} differs from the share {} that this run holds out, and the rest "
        "has been trained on; leave it out, or give --eval-data",
        fmt::format("{}", *o.eval_fraction), fmt::format("{}", saved.eval_fraction));
}

[[noreturn]] void refuse_holding_out(const options& o, const std::string& name) {
  const std::string option = o.eval_fraction ? fmt::format("--eval-fraction {}", *o.eval_fraction)
                                             : fmt::format("--eval-every {}", o.eval_every);
  throw failure(2,
                "RC6187: {} has no data to measure, because this run has trained on {} and cannot hold out a "
                "part of it now; give --eval-data, or leave it out",
                option, name);
}

}  // namespace

double held_share(const run_state& state) { return state.eval_data.empty() ? state.eval_fraction : 0; }

void hold_out(const std::vector<resumed_source>& sources, const known_data& known, const run_state& saved,
              const run_state& now, const options& o, planned_data& plan) {
  refuse_other_share(o, saved, plan.record);
  std::string trained_on;  // the first source with no part that can be held out
  for (std::size_t i = 0; i < sources.size() && trained_on.empty(); ++i)
    if (!may_hold_out(sources[i], plan.record.sources[i], known)) trained_on = plan.record.sources[i].name;
  plan.may_hold_out = trained_on.empty();
  if (!plan.may_hold_out && now.eval_data.empty()) {
    if (o.eval_every > 0 || o.eval_fraction.value_or(0) > 0) refuse_holding_out(o, trained_on);
    if (now.eval_fraction > 0)
      plan.notes.push_back(
          say("RC6191: no held-out loss is measured, because a part of {} has been trained on that would be "
              "held out; give --eval-data",
              trained_on));
  }
  const double share = plan.may_hold_out ? held_share(now) : 0;
  for (const resumed_source& s : sources)
    plan.orders.push_back({parse_shuffle(now.shuffle), s.known == nullptr ? share : 0});
}

}  // namespace rankc::runtime
