// SPDX-License-Identifier: Apache-2.0
#include "row_dual.hpp"

#include <equivalence/facts.hpp>
#include <fmt/format.h>

#include <rankc/ops/table.hpp>

#include <algorithm>

#include "traced_ports.hpp"
#include "undeclared.hpp"

namespace rankc::codegen {

row_dual::row_dual(const trace& t, const rankc::op& o) : op_(o) {
  trace_.recipe = t.recipe;
  trace_.backward_of = o.from;
  for (int& v : op_.in) {
    if (v < 0) continue;
    if (const int w = t.find_parameter(v); w >= 0) {
      weight_info fresh = t.weights[static_cast<std::size_t>(w)];
      fresh.trainable = true;
      fresh.has_gradient = false;
      v = trace_.add(fresh).id;
    } else {
      v = trace_.add(t.values[static_cast<std::size_t>(v)]).id;
    }
  }
  for (int& v : op_.out)
    if (v >= 0) v = trace_.add(t.values[static_cast<std::size_t>(v)]).id;
  trace_.gradients.assign(trace_.values.size(), -1);
  for (const int v : op_.out)
    if (v >= 0)
      trace_.gradients[static_cast<std::size_t>(v)] =
          trace_.add(cotangent(trace_.values[static_cast<std::size_t>(v)])).id;
  name_ports();
  first_made_ = static_cast<int>(trace_.values.size());
  backward b{trace_, op_};
  op_.kind->dual(b);
  if (!trace_.said.empty()) give_up("{}", trace_.said.front().view());
  for (const rankc::op& applied : trace_.ops) check_applied(applied);
}

/// The equivalence check gives the ops of a dual the numbers and the sizes of the op itself.
void row_dual::check_applied(const rankc::op& applied) const {
  const op_row& row = *applied.kind;
  const attributes &given = applied.with, &own = op_.with;
  const auto refuse = [&](std::string_view what) { give_up("its dual gives {} {}", row.name, what); };
  if (!ops::is_known(&row)) {
    if (applied.number() != op_.number() || given.rows != own.rows || given.seq != own.seq)
      refuse("another number, rows or seq than its own");
    return check_units(applied);
  }
  const algebra::fact& f = algebra::facts()[static_cast<std::size_t>(algebra::find_fact(row.name))];
  if (!f.sizes.empty()) refuse("heads, or parts of features");
  if (f.reads_number && applied.number() != op_.number()) refuse("another number than its own");
  if (f.reads_seq ? given.seq != own.seq : given.seq != 0) refuse("another seq than it takes");
  if (f.reads_rows ? given.rows != own.rows : given.rows != 0) refuse("other rows than it takes");
}

/// A user's row in a dual must have the units of the op itself, by the same symbols.
void row_dual::check_units(const rankc::op& applied) const {
  const std::map<std::string_view, int> known = units_of(op_);
  for (const auto& [symbol, unit] : units_of(applied))
    if (const auto at = known.find(symbol); at == known.end() || at->second != unit)
      give_up("its dual applies {} to units of {} {}, which are not its own", applied.kind->name, unit,
              symbol);
}
std::map<std::string_view, int> row_dual::units_of(const rankc::op& o) const {
  std::map<std::string_view, int> units;
  for (const traced_port& p : traced_ports(o))
    for (int d = 0; d < p.of->shape.ndim; ++d)
      if (const std::string_view unit = p.of->shape.dim[d].unit; !unit.empty())
        units[unit] = trace_.values[static_cast<std::size_t>(p.value)].shape[d].unit;
  return units;
}

void row_dual::name_ports() {
  for (const traced_port& p : traced_ports(op_)) {
    names_[p.value] = p.of->name;
    if (p.result < 0) {
      operands_[p.value] = p.of->name;
      continue;
    }
    const std::string gradient = fmt::format("d{}", p.of->name);
    if (op_.kind->find(gradient) >= 0)
      give_up("port {} has the name of the gradient of {}", gradient, p.of->name);
    names_[trace_.gradients[static_cast<std::size_t>(p.value)]] = gradient;
  }
}

bool row_dual::is_read(int value) const {
  return std::any_of(trace_.ops.begin(), trace_.ops.end(), [&](const rankc::op& o) {
    return std::find(std::begin(o.in), std::end(o.in), value) != std::end(o.in);
  });
}

/// The name of an intermediate: "_0".
std::string row_dual::name_of(int made) const { return fmt::format("_{}", made - first_made_); }

/// The operand whose gradient a value is; empty if the value is read again or is the gradient of several.
std::string row_dual::operand_of(int made) const {
  std::string name;
  int operands = 0;
  for (const auto& [operand, port_name] : operands_) {
    if (trace_.gradients[static_cast<std::size_t>(operand)] != made) continue;
    name = port_name;
    ++operands;
  }
  return operands == 1 && !is_read(made) ? name : "";
}

/// A result that is the gradient of one operand has the name of its port; another one has a number.
std::string row_dual::left_of(const rankc::op& o, int result) const {
  if (const int w = o.adds_to[result]; w >= 0)
    return operands_.at(trace_.weights[static_cast<std::size_t>(w)].id);
  const std::string operand = operand_of(o.out[result]);
  return operand.empty() ? name_of(o.out[result]) : operand;
}

std::string row_dual::assignments_of(const rankc::op& o, std::map<int, std::string>& names) const {
  std::string left, given;
  for (int r = 0; r < o.kind->count(true); ++r) {
    left += (r ? " " : "") + left_of(o, r);
    names[o.out[r]] = name_of(o.out[r]);
  }
  for (int i = 0; i < o.kind->count(false); ++i)
    given += fmt::format("{}{}", i ? ", " : "", names.at(o.in[i]));
  return fmt::format("{} = {}({})", left, o.kind->name, given);
}

std::string row_dual::text() const {
  std::map<int, std::string> names = names_;
  std::string text;
  const auto add = [&](const std::string& one) { text += (text.empty() ? "" : "; ") + one; };
  for (const rankc::op& o : trace_.ops) add(assignments_of(o, names));
  for (const auto& [operand, name] : operands_) {
    const int given = trace_.gradients[static_cast<std::size_t>(operand)];
    if (given < 0) continue;
    const bool is_named = given >= first_made_ && operand_of(given) == name;
    if (!is_named) add(fmt::format("{} = {}", name, names.at(given)));
  }
  return text;
}

}  // namespace rankc::codegen
