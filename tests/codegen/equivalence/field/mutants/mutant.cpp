// SPDX-License-Identifier: Apache-2.0
#include "mutant.hpp"

#include <equivalence/call_numbers.hpp>
#include <proof/mutations.hpp>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace field {

namespace {

void run_model(judged& j) {
  j.exact = j.f64 = nullptr;
  try {
    j.exact = execution::over_field(j.model);
    j.f64 = execution::in_f64(j.model);
  } catch (const std::runtime_error&) {
    j.exact = nullptr;
  }
}

fault make_order_fault(rankc::codegen::program& p, fault_form form, std::mt19937& random) {
  namespace order = rankc::codegen::testing;
  const order::mutation m =
      form == fault_form::field ? order::mutate_field(p, random) : order::mutate_structure(p, random);
  return {m.kind.empty() ? "" : "order: " + m.kind, m.text};
}

/// Make one fault of a form; draws that change nothing are repeated. `in_model`: whether the model was
/// changed.
fault add_fault(judged& j, fault_form form, std::mt19937& random, bool& in_model) {
  fault f;
  while (f.kind.empty()) {
    const unsigned of = random() % 8;
    if (of == 0) f = make_order_fault(j.program, form, random);
    else if (of == 1) f = make_fault(j.model, form, random);
    else f = make_fault(j.program, form, random);
    in_model |= of == 1 && !f.kind.empty();
  }
  return f;
}

fault_form draw_form(std::mt19937& random) {
  return random() % 2 ? fault_form::field : fault_form::structure;
}

bool has_sizes(const view& v) {
  return v.unit > 0 && std::all_of(v.shape.begin(), v.shape.end(), [](std::int64_t n) { return n > 0; });
}

/// Calls state the sizes of their altered ops, as a generator with that fault would. Otherwise the check of
/// sizes would hide faults that other checks must find.
void name_sizes(program& p) {
  for (rank_program& r : p.ranks)
    for (op& o : r.ops) {
      const int row = o.given.empty() ? -1 : algebra::find_fact(o.row);
      if (row < 0) continue;
      const algebra::fact& f = algebra::facts()[static_cast<std::size_t>(row)];
      const bool is_sized = std::all_of(o.views.begin(), o.views.end(), has_sizes);
      if (is_sized && o.views.size() == f.ports.size()) o.given = algebra::call_numbers(o, f);
    }
}

}  // namespace

judged judged_of(const subject& s) {
  return {s.name, s.program, s.model, execution::over_field(s.model), execution::in_f64(s.model), s.loads};
}

mutant draw_mutant(const judged& j, std::mt19937& random) {
  constexpr mutant_form forms[]{mutant_form::field, mutant_form::structure, mutant_form::structure,
                                mutant_form::two};
  mutant m{j, forms[random() % 4], {}};
  bool in_model = false;
  if (m.form == mutant_form::two) {
    const fault first = add_fault(m.of, draw_form(random), random, in_model),
                second = add_fault(m.of, draw_form(random), random, in_model);
    m.what = {"two faults", first.kind + ": " + first.text + ", and " + second.kind + ": " + second.text};
  } else {
    const bool is_field = m.form == mutant_form::field;
    m.what = add_fault(m.of, is_field ? fault_form::field : fault_form::structure, random, in_model);
  }
  name_sizes(m.of.program);
  if (in_model) run_model(m.of);
  m.what.text = j.name + ": " + m.what.text;
  return m;
}

}  // namespace field
