// SPDX-License-Identifier: Apache-2.0
// Checks a timed step, on every target: each rank's actions are in the plan's order, and intervals on a lane
// do not overlap.
#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "plans.hpp"
#include "run.hpp"

/// The actions of a pipeline rank in a program's plan.
inline std::vector<std::string> actions_of(const registered& program, int pp) {
  for (const programs::job& j : programs::jobs)
    for (const programs::layout& l : programs::all_layouts()) {
      if (program.job != j.name || program.layout != l.name) continue;
      const rankc::action_table t = programs::make(j, l).actions;
      std::vector<std::string> out;
      for (int i = t.begin[pp]; i < t.begin[pp + 1]; ++i) {
        if (!computes(t.actions[i].kind)) continue;
        rankc::sentence s;
        s << t.actions[i];
        out.emplace_back(s.view());
      }
      return out;
    }
  throw std::logic_error("no such program");
}

inline rankc::runtime::step_output traced_step(run& r, std::vector<rankc::runtime::traced>& into) {
  r.load();
  const auto& t = r.about.train;
  return r.engine->traced_step({r.lr, t.weight_decay, t.clip, t.beta1, t.beta2, t.eps, ++r.steps}, into);
}

inline void check_times(const registered& program, const std::vector<rankc::runtime::traced>& did) {
  const auto& about = *program.about;
  for (int rank = 0; rank < about.world(); ++rank) {
    CAPTURE(rank);
    std::vector<std::string> actions, others;
    const auto lanes = about.layouts[about.ranks[rank].pp].lanes;
    std::vector<double> until(lanes.size(), 0.0);
    for (const rankc::runtime::traced& e : did) {
      if (e.rank != rank) continue;
      CAPTURE(std::string(e.name));
      double& before = until.at(static_cast<std::size_t>(e.lane));
      CHECK(e.begin >= before);
      CHECK(e.end >= e.begin);
      before = e.end;
      if (!lanes[static_cast<std::size_t>(e.lane)].computes) continue;
      const std::string name(e.name);
      (name.ends_with("REDUCE_GRAD") || name.ends_with("STEP") ? others : actions).push_back(name);
    }
    CHECK(actions == actions_of(program, about.ranks[rank].pp));
    CHECK(std::count_if(others.begin(), others.end(),
                        [](const std::string& n) { return n.ends_with("STEP"); }) == 1);
  }
}
