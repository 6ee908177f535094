// SPDX-License-Identifier: Apache-2.0
// The figures of Sea AI Lab's heuristic schedules. oracles/schedules/heuristics.txt has a line for each of
// their orders: name, pp, stages per rank, microbatches, costs F I W C, peak in microbatches of a stage,
// makespan. An independent simulator gave the last two.
#pragma once
#include <rankc/schedule/timing.hpp>

#include <fstream>
#include <string>
#include <vector>

struct figures {
  std::string name;
  int pp = 0, stages_per_rank = 0, microbatches = 0;
  rankc::costs cost = {};
  int peak = 0;
  double makespan = 0;
};

inline std::vector<figures> read_figures() {
  std::ifstream file(RANKC_ORACLES "/heuristics.txt");
  std::vector<figures> all;
  for (figures f; file >> f.name >> f.pp >> f.stages_per_rank >> f.microbatches >> f.cost.forward >>
                  f.cost.input_grad >> f.cost.weight_grad >> f.cost.send >> f.peak >> f.makespan;)
    all.push_back(f);
  return all;
}
