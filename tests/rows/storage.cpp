// SPDX-License-Identifier: Apache-2.0
// Results in the memory of operands, and added to what is there.
#include "laws.hpp"

#include <doctest/doctest.h>

namespace rankc::test::rows {

void check_in_place(machine& on, const row& r, const setting& s) {
  const operands o = random_operands(on, r, s, 11);
  for (std::size_t result = 0; result < r.results(); ++result)
    for (std::size_t operand = r.results(); operand < r.ports.size(); ++operand)
      for (const std::string_view name : r.of(result).may_replace) {
        if (name != r.of(operand).name) continue;
        const replacement instead{result, operand};
        const operands apart = on.run(r, s, o), in_place = on.run(r, s, o, false, &instead);
        for (std::size_t p = 0; p < r.results(); ++p) {
          INFO(on.name() << " " << r.op->name << " over " << name << ": " << r.of(p).name);
          CHECK(deviation(in_place[p], apart[p]) <= on.tolerance());
        }
      }
}

void check_adding(machine& on, const row& r, const setting& s) {
  bool adds = false;
  for (std::size_t p = 0; p < r.results(); ++p) adds |= r.of(p).adds || r.of(p).as == use::sum;
  if (!adds || r.is->equations[0].is == equation::kind::zero) return;
  const operands o = random_operands(on, r, s, 12);
  const operands made = on.run(r, s, o), added = on.run(r, s, o, true);
  for (std::size_t p = 0; p < r.results(); ++p) {
    values want = made[p];
    if (r.of(p).adds || r.of(p).as == use::sum)
      for (std::size_t i = 0; i < want.size(); ++i) want[i] += o[p][i];
    INFO(on.name() << " " << r.op->name << " does not add to " << r.of(p).name);
    CHECK(deviation(added[p], want, largest(made[p])) <= on.tolerance());
  }
}

}  // namespace rankc::test::rows
