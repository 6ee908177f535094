// SPDX-License-Identifier: Apache-2.0
#include "model.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "contents.hpp"

namespace rankc::codegen::algebra {

namespace {

const term unit_gradient = leaf("gradient", "of the loss");

hasher begin_hash(const fact& f, int equation, const attributes& with) {
  hasher h(f.key);
  h << static_cast<word>(equation);
  if (f.seq) h << static_cast<word>(with.seq);
  if (f.number) h << with.number;
  if (f.parts) h << static_cast<word>(with.parts[0]) << static_cast<word>(with.parts[1]);
  return h;
}

const fact& fact_of(const std::string& row) {
  const int at = find_fact(row);
  if (at < 0) throw unknown_row(row);
  return facts()[static_cast<std::size_t>(at)];
}

}  // namespace

term result_of(const fact& f, int equation, const term* operands, const attributes& with) {
  const auto& e = f.equations[static_cast<std::size_t>(equation)];
  hasher h = begin_hash(f, equation, with);
  for (std::size_t i = 0; i < e.operands.size(); ++i)
    if (e.linear[i] && operands[i].is_zero()) return zero;
  if (f.commutative && operands[1].a < operands[0].a) return h << operands[1] << operands[0];
  for (std::size_t i = 0; i < e.operands.size(); ++i) h << operands[i];
  return h;
}

term addend_of(const fact& f, int equation, int operand, term of, const attributes& with) {
  if (of.is_zero()) return zero;
  return begin_hash(f, equation, with) << static_cast<word>(operand) << of;
}

model::model(const specification& s) : spec_(s), index_(1 << 12, -1), uses_(s.uses.size()) {
  begin();
  term x = leaf("ids", "");
  for (std::size_t u = 0; u < s.uses.size(); ++u) {
    forward(u, x);
    const specification::layer& l = s.layers[static_cast<std::size_t>(s.uses[u].layer)];
    if (l.result < 0) throw refusal(s.uses[u].name + " has no result");
    x = uses_[u].values[static_cast<std::size_t>(l.result)];
    for (int side : l.side_losses) loss_ = loss_ + uses_[u].values[static_cast<std::size_t>(side)];
  }
  loss_ = loss_ + x;
  for (std::size_t u = s.uses.size(); u-- > 0;) backward(u);
  for (auto& [name, p] : parameters_)
    if (p.trainable) norm_ = norm_ + squares_of(p.gradient);
  for (auto& [name, p] : parameters_) {
    for (int i = 0; i < 3; ++i)
      p.after[i] = p.trainable ? updated(i, p.state, p.gradient, norm_) : p.state[i];
    know(p.gradient, "the gradient of " + name, &p.shape);
    know(p.after[0], name + " after the update", &p.shape);
  }
  know(loss_, "the loss", nullptr);
  know(norm_, "the sum of the gradients' squares", nullptr);
}

void model::begin() {
  know(leaf("ids", ""), "the ids", nullptr);
  know(leaf("targets", ""), "the targets", nullptr);
  for (const specification::use& u : spec_.uses) {
    const specification::layer& l = spec_.layers[static_cast<std::size_t>(u.layer)];
    for (std::size_t i = 0; i < l.parameters.size(); ++i) {
      const std::string& name = u.parameters.at(i);
      const std::vector<std::int64_t>& shape =
          l.values[static_cast<std::size_t>(l.parameters[i].value)].shape;
      const auto [at, is_new] = parameters_.try_emplace(name);
      if (is_new) {
        at->second = {shape,
                      l.parameters[i].trainable,
                      {leaf("weight", name), leaf("first moment", name), leaf("second moment", name)},
                      zero,
                      {}};
        know(at->second.state[0], name, &at->second.shape);
        known_[static_cast<std::size_t>(find(at->second.state[0]))].owner = &*at;
      } else if (at->second.shape != shape || at->second.trainable != l.parameters[i].trainable) {
        throw refusal(name +
                      " is shared by layers that do not agree on its shape, or on whether it is trained");
      }
    }
  }
}

std::vector<term> model::operands(std::size_t use, const specification::op& o, const fact& f) const {
  std::vector<term> all(f.names.size(), zero);
  const std::vector<term>& values = uses_[use].values;
  const std::size_t results = static_cast<std::size_t>(f.results), given = f.ports.size() - results;
  for (std::size_t i = 0; i < o.out.size() && i < results; ++i)
    all[i] = values[static_cast<std::size_t>(o.out[i])];
  for (std::size_t i = 0; i < o.in.size() && i < given; ++i)
    all[results + i] = values[static_cast<std::size_t>(o.in[i])];
  if (o.in.size() + 1 == given && f.positions) {  // the rotary table is no value
    const specification::layer& l = spec_.layers[static_cast<std::size_t>(spec_.uses[use].layer)];
    all[f.ports.size() - 1] = rotary_table(o.number, l.values[static_cast<std::size_t>(o.in[0])].unit);
  } else if (o.in.size() != given || o.out.size() != results) {
    throw refusal(fmt::format("{}: {} has {} operands and {} results; expected {} and {}",
                              spec_.uses[use].name, o.row, o.in.size(), o.out.size(), given, results));
  }
  return all;
}

attributes model::attributes_of(const specification::layer& l, const specification::op& o,
                                const fact& f) const {
  attributes a{o.rows, o.seq, o.number, {}};
  for (std::size_t p = 0; f.parts && p < f.ports.size(); ++p) {
    const axis_use& last = f.ports[p].axes.back();
    const char letter = last.unit ? last.unit : last.of;
    if (letter != 'l' && letter != 'r') continue;
    const std::size_t results = static_cast<std::size_t>(f.results);
    const specification::tensor& t =
        l.values[static_cast<std::size_t>(p < results ? o.out[p] : o.in[p - results])];
    a.parts[letter == 'r'] = last.unit ? t.unit : t.shape.back();
  }
  return a;
}

/// Fill in a row's results, and know what is made on the way.
void model::apply(const fact& f, std::vector<term>& ports, const attributes& with, const std::string& where) {
  for (std::size_t k = 0; k < f.equations.size(); ++k) {
    const equation& e = f.equations[k];
    std::vector<term> given;
    for (int o : e.operands) given.push_back(ports[static_cast<std::size_t>(o)]);
    term& result = ports[static_cast<std::size_t>(e.results[0])];
    switch (e.is) {
      case equation::kind::zero:
        result = zero;
        break;
      case equation::kind::multiple:
        result = (f.number ? in_field(with.number) : 1) * given[0];
        break;
      case equation::kind::function:
        result = result_of(f, static_cast<int>(k), given.data(), with);
        know(result, where, nullptr);
        break;
      case equation::kind::sum:
        result = zero;
        for (std::size_t i = 0; i < given.size(); ++i)
          result =
              result +
              (e.same[i] ? given[i] : addend_of(f, static_cast<int>(k), static_cast<int>(i), given[i], with));
        break;
      case equation::kind::call: {
        const fact& callee = facts()[static_cast<std::size_t>(e.row)];
        std::vector<term> inner(callee.names.size(), zero);
        std::copy(given.begin(), given.end(), inner.begin() + callee.results);
        apply(callee, inner, with, where);
        for (std::size_t i = 0; i < e.results.size(); ++i)
          ports[static_cast<std::size_t>(e.results[i])] = inner[i];
      }
    }
  }
}

void model::forward(std::size_t use, term input) {
  const specification::use& u = spec_.uses[use];
  const specification::layer& l = spec_.layers[static_cast<std::size_t>(u.layer)];
  std::vector<term>& values = uses_[use].values;
  values.assign(l.values.size(), zero);
  if (l.targets >= 0) values[static_cast<std::size_t>(l.targets)] = leaf("targets", "");
  values[static_cast<std::size_t>(l.input)] = input;
  for (std::size_t i = 0; i < l.parameters.size(); ++i)
    values[static_cast<std::size_t>(l.parameters[i].value)] = parameters_.at(u.parameters[i]).state[0];
  for (const specification::op& o : l.ops) {
    const fact& f = fact_of(o.row);
    std::vector<term> ports = operands(use, o, f);
    if (f.positions && o.in.size() + o.out.size() < f.ports.size())
      know(ports[f.ports.size() - 1], "the rotary table", nullptr);
    apply(f, ports, attributes_of(l, o, f), u.name + ": " + o.row);
    for (std::size_t i = 0; i < o.out.size(); ++i) values[static_cast<std::size_t>(o.out[i])] = ports[i];
  }
}

void model::backward(std::size_t use) {
  const specification::use& u = spec_.uses[use];
  const specification::layer& l = spec_.layers[static_cast<std::size_t>(u.layer)];
  std::vector<term>& gradients = uses_[use].gradients;
  gradients.assign(l.values.size(), zero);
  for (int side : l.side_losses) gradients[static_cast<std::size_t>(side)] = unit_gradient;
  const bool is_last = use + 1 == uses_.size();
  const auto from_next = [&] {
    const specification::layer& next = spec_.layers[static_cast<std::size_t>(spec_.uses[use + 1].layer)];
    return uses_[use + 1].gradients[static_cast<std::size_t>(next.input)];
  };
  term& of_result = gradients[static_cast<std::size_t>(l.result)];
  of_result = of_result + (is_last ? unit_gradient : from_next());
  for (auto o = l.ops.rbegin(); o != l.ops.rend(); ++o) backward_op(use, *o);
  for (std::size_t i = 0; i < l.parameters.size(); ++i) {
    term& of = parameters_.at(u.parameters[i]).gradient;
    of = of + gradients[static_cast<std::size_t>(l.parameters[i].value)];
  }
}

void model::backward_op(std::size_t use, const specification::op& o) {
  const specification::use& u = spec_.uses[use];
  const specification::layer& l = spec_.layers[static_cast<std::size_t>(u.layer)];
  const fact& f = fact_of(o.row);
  std::vector<term>& gradients = uses_[use].gradients;
  const std::size_t results = static_cast<std::size_t>(f.results);
  std::vector<bool> used(results, false);
  const auto of_result = [&](int p) {
    return gradients[static_cast<std::size_t>(o.out[static_cast<std::size_t>(p)])];
  };
  bool reached = false;
  for (std::size_t r = 0; r < results; ++r) reached |= !of_result(static_cast<int>(r)).is_zero();
  if (!reached) return;
  const std::vector<term> ports = operands(use, o, f);
  const attributes with = attributes_of(l, o, f);
  std::vector<std::pair<std::size_t, term>> made;
  for (const derivative& d : f.derivatives) {
    std::vector<term> given;
    for (const factor& x : d.from) {
      if (x.gradient) used[static_cast<std::size_t>(x.port)] = true;
      given.push_back(x.gradient ? of_result(x.port) : ports[static_cast<std::size_t>(x.port)]);
    }
    if (d.row >= 0) {
      const fact& g = facts()[static_cast<std::size_t>(d.row)];
      std::vector<term> inner(g.names.size(), zero);
      std::copy(given.begin(), given.end(), inner.begin() + g.results);
      apply(g, inner, with, u.name + ": " + g.row);
      given.assign(inner.begin(), inner.begin() + g.results);
    }
    for (std::size_t i = 0; i < d.of.size(); ++i)
      made.emplace_back(static_cast<std::size_t>(d.of[i]), given[i]);
  }
  for (const auto& [port, gradient] : made) {
    if (port < results || port - results >= o.in.size()) continue;
    const auto value = static_cast<std::size_t>(o.in[port - results]);
    gradients[value] = gradients[value] + gradient;
    know(gradient, u.name + ": gradient of " + o.row, &l.values[value].shape);
  }
  for (std::size_t r = 0; r < results; ++r)
    if (!used[r] && !of_result(static_cast<int>(r)).is_zero() &&
        !(f.ports[r].axes.empty() && of_result(static_cast<int>(r)) == unit_gradient))
      throw refusal(fmt::format("{}: the facts do not say what gives {} of {} a gradient", u.name,
                                f.ports[r].name, o.row));
}

}  // namespace rankc::codegen::algebra
