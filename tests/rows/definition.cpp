// SPDX-License-Identifier: Apache-2.0
// Fused rows: checks the facts' definitions and derivatives.
#include "definition.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace rankc::test::rows {

setting setting_for(const row& of, const setting& s, const std::vector<const std::vector<extent>*>& shapes) {
  setting made = s;
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

operands by_calls(machine& on, const row& r, const setting& s, const operands& given,
                  const std::vector<std::string>& ports, const std::vector<row_call>& calls,
                  maker otherwise) {
  struct held {
    values v;
    std::vector<extent> dims;
  };
  std::map<std::string, held> known;
  for (std::size_t p = 0; p < r.ports.size(); ++p) known[ports[p]] = {given[p], shape(r, p, s)};
  for (const row_call& c : calls) {
    std::vector<const std::vector<extent>*> dims;
    operands o;
    for (const std::string& name : c.ports) {
      const auto at = known.find(name);
      dims.push_back(at == known.end() ? nullptr : &at->second.dims);
      o.push_back(at == known.end() ? values{} : at->second.v);
    }
    const setting inner = setting_for(*c.of, s, dims);
    const operands made = on.has(*c.of) ? on.run(*c.of, inner, o) : otherwise(on, *c.of, inner, o);
    for (std::size_t p = 0; p < c.of->results(); ++p) known[c.ports[p]] = {made[p], shape(*c.of, p, inner)};
  }
  operands made = given;
  for (std::size_t p = 0; p < r.results(); ++p) made[p] = known.at(ports[p]).v;
  return made;
}

operands by_definition(machine& on, const row& r, const setting& s, const operands& given) {
  std::vector<row_call> calls;
  for (const equation& e : r.is->equations) {
    row_call c{&find_row(codegen::algebra::facts()[static_cast<std::size_t>(e.row)].row), {}};
    for (const auto* list : {&e.results, &e.operands})
      for (const int name : *list) c.ports.push_back(r.is->names[static_cast<std::size_t>(name)]);
    calls.push_back(std::move(c));
  }
  return by_calls(on, r, s, given, r.is->names, calls, by_definition);
}

/// Whether a call reads a result of another one.
static bool reads_result(const row_call& reader, const row_call& maker) {
  return std::any_of(
      reader.ports.begin() + static_cast<std::ptrdiff_t>(reader.of->results()), reader.ports.end(),
      [&](const std::string& name) {
        return std::find(maker.ports.begin(),
                         maker.ports.begin() + static_cast<std::ptrdiff_t>(maker.of->results()),
                         name) != maker.ports.begin() + static_cast<std::ptrdiff_t>(maker.of->results());
      });
}

operands by_fusions(machine& on, const row& r, const setting& s, const operands& given) {
  std::vector<fusion> all;
  ops::each_fusion([&](const fusion& f) { all.push_back(f); });
  const auto names = [](std::string_view text) {
    std::vector<std::string> list;
    for (const std::string_view word : words(text, ' ')) list.emplace_back(word);
    return list;
  };
  for (const fusion& f : all)
    if (f.into.kind == r.op) {
      std::vector<row_call> calls{{&find_row(f.first.kind->name), names(f.first.operands)},
                                  {&find_row(f.second.kind->name), names(f.second.operands)}};
      if (reads_result(calls[0], calls[1])) std::swap(calls[0], calls[1]);
      return by_calls(on, r, s, given, names(f.into.operands), calls, by_fusions);
    }
  throw std::logic_error(std::string(r.op->name) + ": it has no kernel, and no two ops become one");
}

void check_fusion(machine& on, const row& r, const setting& s) {
  const operands o = random_operands(on, r, s, 18);
  const operands got = by_fusions(on, r, s, o), want = by_definition(on, r, s, o);
  for (std::size_t p = 0; p < r.results(); ++p) {
    INFO(r.op->name << " is not the two ops that become one: " << r.is->ports[p].name);
    CHECK(deviation(got[p], want[p]) <= on.tolerance());
  }
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
