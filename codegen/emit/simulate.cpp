// SPDX-License-Identifier: Apache-2.0
#include <rankc/codegen/simulate.hpp>

#include <algorithm>
#include <map>

namespace rankc::codegen {

timeline simulate(const action_table& t, const action_costs& costs) {
  const int stages = t.stages();
  std::map<std::pair<int, int>, double> forward_end, backward_end;  // of (stage, microbatch)
  timeline out;
  out.ranks.resize(t.ranks());
  std::vector<int> at = t.begin, live(t.ranks(), 0);
  std::vector<double> free_at(t.ranks(), 0), busy(t.ranks(), 0);
  out.peak_activations.assign(t.ranks(), 0);
  // When the input from another stage arrives: negative while it has not been made.
  auto arrival = [&](const auto& made, int stage, int to, int m) {
    const auto known = made.find({stage, m});
    if (known == made.end()) return -1.0;
    return known->second + (t.rank_of_stage[stage] == t.rank_of_stage[to] ? 0 : costs.send);
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (int r = 0; r < t.ranks(); ++r)
      for (; at[r] < t.begin[r + 1]; ++at[r], moved = true) {
        const action a = t.actions[at[r]];
        const int s = a.stage, m = a.microbatch;
        double ready = free_at[r], took = costs.forward;
        if (a.kind == action_kind::F) {
          const double input = s > 0 ? arrival(forward_end, s - 1, s, m) : 0;
          if (input < 0) break;
          ready = std::max(ready, input);
          out.peak_activations[r] = std::max(out.peak_activations[r], ++live[r]);
        } else {
          const double input = a.kind == action_kind::W || s + 1 == stages ? arrival(a.kind == action_kind::W ? backward_end : forward_end, s, s, m)
                                                                           : arrival(backward_end, s + 1, s, m);
          if (input < 0) break;
          ready = std::max(ready, input);
          took = a.kind == action_kind::I   ? costs.input_grad
                 : a.kind == action_kind::W ? costs.weight_grad
                                            : costs.input_grad + costs.weight_grad;
          if (a.kind != action_kind::I) --live[r];
        }
        free_at[r] = ready + took;
        busy[r] += took;
        if (a.kind == action_kind::F) forward_end[{s, m}] = free_at[r];
        else if (a.kind != action_kind::W) backward_end[{s, m}] = free_at[r];
        out.ranks[r].push_back({a, ready, free_at[r]});
      }
  }
  double work = 0;
  for (int r = 0; r < t.ranks(); ++r) {
    out.makespan = std::max(out.makespan, free_at[r]);
    work += busy[r];
  }
  for (double b : busy) out.bubble_per_rank.push_back(out.makespan > 0 ? 1 - b / out.makespan : 0);
  out.bubble = out.makespan > 0 ? 1 - work / (out.makespan * t.ranks()) : 0;
  return out;
}

}  // namespace rankc::codegen
