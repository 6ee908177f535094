// SPDX-License-Identifier: Apache-2.0
// Results written over operands, and results added to existing values.
#include "laws.hpp"

#include <doctest/doctest.h>

#include <algorithm>

namespace rankc::test::rows {

void check_in_place(machine& on, const row& r, const setting& s) {
  const operands o = random_operands(on, r, s, 11);
  for (std::size_t result = 0; result < r.results(); ++result)
    for (const std::string& name : r.is->ports[result].over) {
      const auto at = std::find(r.is->names.begin(), r.is->names.end(), name);
      const replacement instead{result, static_cast<std::size_t>(at - r.is->names.begin())};
      REQUIRE(instead.operand < r.ports.size());
      const operands apart = on.run(r, s, o), in_place = on.run(r, s, o, false, &instead);
      for (std::size_t p = 0; p < r.results(); ++p) {
        INFO(on.name() << " " << r.op->name << " over " << name << ": " << r.of(p).name);
        CHECK(deviation(in_place[p], apart[p]) <= on.tolerance());
      }
    }
}

void check_adding(machine& on, const row& r, const setting& s) {
  const auto& ports = r.is->ports;
  if (std::none_of(ports.begin(), ports.end(), [](const auto& p) { return p.adds; })) return;
  const operands o = random_operands(on, r, s, 12);
  const operands made = on.run(r, s, o), added = on.run(r, s, o, true);
  for (std::size_t p = 0; p < r.results(); ++p) {
    values want = made[p];
    if (ports[p].adds)
      for (std::size_t i = 0; i < want.size(); ++i) want[i] += o[p][i];
    INFO(on.name() << " " << r.op->name << " does not add to " << r.of(p).name);
    CHECK(deviation(added[p], want, largest(made[p])) <= on.tolerance());
  }
}

}  // namespace rankc::test::rows
