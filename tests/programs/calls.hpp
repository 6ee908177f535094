// SPDX-License-Identifier: Apache-2.0
// Checks the calls in a timed step against the calls in the program's tables.
#pragma once
#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include <rankc/runtime/call_names.hpp>

#include "run.hpp"

/// Take a step call by call. Each rank must make exactly the calls of its table. Only with `times_all` are
/// the communications on separate lanes timed completely.
inline rankc::runtime::step_output step_by_calls(run& r, bool times_all) {
  using rankc::runtime::call_kind;
  std::vector<rankc::runtime::traced> did;
  r.load();
  const auto& t = r.about.train;
  const auto out = r.engine->step_by_calls({r.lr, t.weight_decay, t.clip, t.beta1, t.beta2, t.eps, ++r.steps,
                                            t.momentum, t.nesterov, t.rounding_seed},
                                           did);
  std::vector<std::map<std::string, int>> made(static_cast<std::size_t>(r.about.world()));
  for (const rankc::runtime::traced& call : did) {
    CHECK(call.end >= call.begin);
    ++made[static_cast<std::size_t>(call.rank)][rankc::runtime::word_of(call.name)];
  }
  for (int rank = 0; rank < r.about.world(); ++rank) {
    CAPTURE(rank);
    std::map<std::string, int>& own = made[static_cast<std::size_t>(rank)];
    CHECK(rankc::runtime::layout_of(r.about, rank).calls.size() > 0);
    for (const rankc::runtime::call_row& row : rankc::runtime::layout_of(r.about, rank).calls) {
      CAPTURE(std::string(row.name));
      if (row.kind == call_kind::communication && !times_all) CHECK(own[row.name] <= row.count);
      else CHECK(own[row.name] == row.count);
      own.erase(row.name);
    }
    CHECK(own.empty());
  }
  return out;
}
