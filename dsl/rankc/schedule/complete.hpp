// temporary
#pragma once
#include <rankc/schedule/actions.hpp>
namespace rankc {
constexpr action_table complete(action_table t) {
  if (t.inference) return t;
  action_table o = t; o.actions.clear();
  for (int r = 0; r < t.ranks(); ++r) {
    o.begin[r] = static_cast<int>(o.actions.size());
    std::vector<int> last(t.stages(), -1);
    for (int i = t.begin[r]; i < t.begin[r+1]; ++i) if (t.actions[i].kind == action_kind::B || t.actions[i].kind == action_kind::W) last[t.actions[i].stage] = i;
    std::vector<int> due;
    for (int i = t.begin[r]; i < t.begin[r+1]; ++i) {
      const action& a = t.actions[i];
      o.actions.push_back(a);
      if (last[a.stage] == i) due.push_back(a.stage);
      if (!a.overlaps_next) { for (int s : due) o.actions.push_back({action_kind::reduce_grad, s, 0}); due.clear(); }
    }
    for (int s = 0; s < t.stages(); ++s) if (last[s] >= 0) o.actions.push_back({action_kind::step, s, 0});
  }
  o.begin[t.ranks()] = static_cast<int>(o.actions.size());
  return o;
}
}
