// SPDX-License-Identifier: Apache-2.0
// The searches of tests/oracles/planner/searches.csv.
#pragma once
#include "oracle.hpp"

namespace oracle {

struct best_plan {
  int tie = 0;  // equal for plans whose times differ by rounding
  rankc::published_model::plan plan = {};
  std::vector<double> stats = {};  // in the order of step_cost_fields
};

struct recorded_search {
  std::string line;
  problem of = {};
  int candidates = 0, feasible = 0, tied_with_tenth = 0;
  // Sums of t and mem over all and over feasible plans; least and most of t and of mem.
  double sums[4] = {}, ends[4] = {};
  std::vector<best_plan> top = {};
};

inline recorded_search read_search(const std::string& line) {
  recorded_search s{.line = line};
  fields f(line);
  f.word();
  s.of.on.model = model_of(f.word());
  s.of.by = strategy_of(f.word());
  const std::string_view system = f.word();
  s.of.on.gpu = system_of(system, f.integer());
  s.of.gpus = f.integer();
  s.of.global_batch = f.integer();
  s.of.on.gpu.hbm_capacity = f.number();
  s.candidates = f.integer();
  s.feasible = f.integer();
  for (double& sum : s.sums) sum = f.number();
  for (double& end : s.ends) {
    const std::string_view text = f.word();  // empty if there are no candidates
    if (!text.empty()) end = fields::parsed<double>(text);
  }
  s.tied_with_tenth = f.integer();
  return s;
}

inline best_plan read_plan(fields f) {
  best_plan b{.tie = f.integer()};
  plan& p = b.plan;
  for (int* number : {&p.dp, &p.tp1, &p.tp2, &p.pp, &p.mbs, &p.nb, &p.nv_tp1, &p.nv_tp2, &p.nv_dp, &p.nv_pp})
    *number = f.integer();
  for (std::size_t i = 0; i < std::size(step_cost_fields); ++i) b.stats.push_back(f.number());
  return b;
}

inline std::vector<recorded_search> read_searches() {
  std::vector<recorded_search> all;
  for (const std::string& line : lines_of("searches.csv", 2)) {
    fields f(line);
    if (line.starts_with("search,")) {
      all.push_back(read_search(line));
    } else {
      f.word();
      all.back().top.push_back(read_plan(f));
    }
  }
  return all;
}

}  // namespace oracle
