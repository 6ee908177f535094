// SPDX-License-Identifier: Apache-2.0
// Rows made of other rows: by the facts' definitions and derivatives.
#include "definition.hpp"

#include <doctest/doctest.h>

#include <algorithm>

namespace rankc::test::rows {

setting setting_for(const row& of, const setting& s, const std::vector<const std::vector<extent>*>& shapes) {
  setting made = s;
  made.gap = s.gap;
  for (std::size_t p = 0; p < shapes.size(); ++p)
    if (shapes[p])
      for (std::size_t d = 0; d < shapes[p]->size(); ++d) {
        const auto& axis = of.is->ports[p].axes[d];
        const extent& e = (*shapes[p])[d];
        if (axis.unit) made.size[axis.unit] = e.unit;
        if (axis.of >= 'a') made.size[axis.of] = axis.unit ? e.count : e.elements();
      }
  return made;
}

operands by_definition(machine& on, const row& r, const setting& s, const operands& given) {
  operands held = given;
  held.resize(r.is->names.size());
  std::vector<std::vector<extent>> shapes(r.is->names.size());
  std::vector<bool> known(r.is->names.size(), true);
  for (std::size_t p = 0; p < r.is->names.size(); ++p) {
    if (p < r.ports.size()) shapes[p] = shape(r, p, s);
    else known[p] = false;
  }
  for (const equation& e : r.is->equations) {
    const row& g = find_row(codegen::algebra::facts()[static_cast<std::size_t>(e.row)].row);
    std::vector<int> names = e.results;
    names.insert(names.end(), e.operands.begin(), e.operands.end());
    std::vector<const std::vector<extent>*> of;
    operands o;
    for (const int n : names) {
      const auto at = static_cast<std::size_t>(n);
      of.push_back(known[at] ? &shapes[at] : nullptr);
      o.push_back(held[at]);
    }
    const setting inner = setting_for(g, s, of);
    const operands made = g.is_defined_by_others() ? by_definition(on, g, inner, o) : on.run(g, inner, o);
    for (std::size_t p = 0; p < e.results.size(); ++p) {
      const auto at = static_cast<std::size_t>(e.results[p]);
      held[at] = made[p];
      shapes[at] = shape(g, p, inner);
      known[at] = true;
    }
  }
  held.resize(r.ports.size());
  return held;
}

void check_definition(machine& on, const row& r, const setting& s) {
  const operands o = random_operands(on, r, s, 8);
  const operands got = on.run(r, s, o), want = by_definition(on, r, s, o);
  for (std::size_t p = 0; p < r.results(); ++p) {
    INFO(on.name() << " " << r.op->name << " is not its definition: " << r.is->ports[p].name);
    CHECK(deviation(got[p], want[p]) <= on.tolerance());
  }
}

}  // namespace rankc::test::rows
