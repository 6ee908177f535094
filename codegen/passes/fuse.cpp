// SPDX-License-Identifier: Apache-2.0
#include "calls.hpp"

namespace rankc::codegen {

void fuse_gradient_sums(value_program& p) {
  auto& list = p.backward;
  for (std::size_t i = 0; i + 1 < list.size(); ++i) {
    if (list[i].call.function != "linear_dx") continue;
    const operand part = list[i].writes[0];
    for (std::size_t j = i + 1; j < list.size(); ++j) {
      value_call& sum = list[j];
      if (!mentions(sum, part)) continue;
      // The first use of the part must be the addition, and the only one.
      if (sum.call.function != "add") break;
      const operand before = sum.reads[0] == part ? sum.reads[1] : sum.reads[0], after = sum.writes[0];
      bool only_here = before.index != p.dy && before != part;
      for (std::size_t k = 0; k < list.size(); ++k) {
        if (k != i && k != j && mentions(list[k], part)) only_here = false;
        if (k >= i && k != j && mentions(list[k], before)) only_here = false;
      }
      if (!only_here) break;
      // The earlier gradient, the part and their sum share one buffer from here on.
      list[i].call.accumulate = accumulation::add;
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(j));
      for (int& a : p.alias)
        if (a == after.index || a == part.index) a = before.index;
      if (p.dx == after.index) p.dx = before.index;
      for (value_call& c : list) {
        for (operand& o : c.reads)
          if (o == after || o == part) o = before;
        for (operand& o : c.writes)
          if (o == after || o == part) o = before;
      }
      break;
    }
  }
}

}  // namespace rankc::codegen
