// SPDX-License-Identifier: Apache-2.0
// Reverse mode: the gradients of each op's operands, by the derivatives in the facts.

#include <algorithm>

#include "contents.hpp"
#include "model.hpp"

namespace rankc::codegen::algebra {

void model::backward(std::size_t use) {
  const specification::use& u = spec_.uses[use];
  const specification::layer& l = spec_.layers[static_cast<std::size_t>(u.layer)];
  std::vector<term>& gradients = uses_[use].gradients;
  gradients.assign(l.values.size(), zero);
  uses_[use].addends.assign(l.values.size(), {});
  for (int side : l.side_losses) gradients[static_cast<std::size_t>(side)] = unit_gradient_;
  const bool is_last = use + 1 == uses_.size();
  const auto from_next = [&](int v) {
    return v < 0 ? zero : uses_[use + 1].gradients[static_cast<std::size_t>(v)];
  };
  const auto give = [&](int result, term gradient) {
    term& of_result = gradients[static_cast<std::size_t>(result)];
    of_result = of_result + gradient;
    if (!gradient.is_zero()) uses_[use].addends[static_cast<std::size_t>(result)].push_back(gradient);
  };
  if (is_last) {
    give(l.result, unit_gradient_);
  } else {
    const specification::layer& next = spec_.layers[static_cast<std::size_t>(spec_.uses[use + 1].layer)];
    give(l.result, from_next(next.input));
    for (const specification::carried_value& c : l.carried)
      if (c.after >= 0) give(c.after, from_next(next.find_carried(c.name).before));
  }
  for (auto o = l.ops.rbegin(); o != l.ops.rend(); ++o) backward_op(use, *o);
  for (std::size_t v = 0; v < gradients.size(); ++v)
    sums_.push_back({uses_[use].addends[v], u.name + ": gradient", l.values[v].shape});
  for (std::size_t i = 0; i < l.parameters.size(); ++i) {
    term& of = parameters_.at(u.parameters[i]).gradient;
    of = of + gradients[static_cast<std::size_t>(l.parameters[i].value)];
    parameters_.at(u.parameters[i])
        .addends.push_back(gradients[static_cast<std::size_t>(l.parameters[i].value)]);
  }
}

void model::backward_op(std::size_t use, const specification::op& o) {
  const specification::use& u = spec_.uses[use];
  const specification::layer& l = spec_.layers[static_cast<std::size_t>(u.layer)];
  const fact& f = facts_.of(o.row);
  std::vector<term>& gradients = uses_[use].gradients;
  const std::size_t results = static_cast<std::size_t>(f.results);
  std::vector<bool> used(results, false);
  const auto of_result = [&](int p) {
    return gradients[static_cast<std::size_t>(o.out[static_cast<std::size_t>(p)])];
  };
  bool reached = false;
  for (std::size_t r = 0; r < results; ++r) reached |= !of_result(static_cast<int>(r)).is_zero();
  if (!reached || f.equations[0].is == equation::kind::zero || f.counts) return;
  const std::vector<term> ports = operands(use, o, f);
  std::vector<term> intermediates(f.intermediates.size(), zero);
  const auto value_of = [&](std::size_t at) {
    return at < f.ports.size() ? ports[at] : intermediates[at - f.ports.size()];
  };
  const attributes with = attributes_of(l, o, f);
  std::vector<std::pair<std::size_t, term>> made;
  for (const derivative& d : f.derivatives) {
    std::vector<term> given;
    for (const factor& x : d.from) {
      if (x.gradient) used[static_cast<std::size_t>(x.port)] = true;
      given.push_back(x.gradient ? of_result(x.port) : value_of(static_cast<std::size_t>(x.port)));
    }
    if (d.row >= 0) {
      const fact& g = facts_[d.row];
      std::vector<term> inner(g.names.size(), zero);
      std::copy(given.begin(), given.end(), inner.begin() + g.results);
      apply(g, inner, with, u.name + ": " + g.row);
      given.assign(inner.begin(), inner.begin() + g.results);
    }
    for (std::size_t i = 0; i < d.of.size(); ++i) {
      const auto at = static_cast<std::size_t>(d.of[i]);
      if (at < f.ports.size()) made.emplace_back(at, given[i]);
      else intermediates[at - f.ports.size()] = given[i];
    }
  }
  for (const auto& [port, gradient] : made) {
    if (port < results || port - results >= o.in.size()) continue;
    const auto value = static_cast<std::size_t>(o.in[port - results]);
    gradients[value] = gradients[value] + gradient;
    if (!gradient.is_zero()) uses_[use].addends[value].push_back(gradient);
    know(gradient, u.name + ": gradient of " + o.row, &l.values[value].shape);
  }
  if (f.of_user) return;  // a user's dual is taken as declared
  for (std::size_t r = 0; r < results; ++r)
    if (!used[r] && !of_result(static_cast<int>(r)).is_zero() &&
        !(f.ports[r].axes.empty() && of_result(static_cast<int>(r)) == unit_gradient_))
      throw refusal("RC7530: the table of facts has no derivative of {} by its result {}, which \"{}\" needs",
                    o.row, f.ports[r].name, u.name);
}

}  // namespace rankc::codegen::algebra
