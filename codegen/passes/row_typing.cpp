// SPDX-License-Identifier: Apache-2.0
#include "row_typing.hpp"

#include "traced_ports.hpp"

namespace rankc::codegen {

namespace {

constexpr axis asked = region_axis;  // ranks of this axis may shard both tokens and features

/// The dim of a tensor that one of the symbols counts; -1: none.
int find_any(const typed_port& p, const std::vector<std::string_view>& counts) {
  for (const std::string_view count : counts)
    if (const int d = p.find(count); d >= 0) return d;
  return -1;
}

/// A result before the rule has placed it: a parameter's gradient begins with the parameter's placements.
type unplaced(const typed_port& result, rankc::placement gradient) {
  if (result.is_gradient) {
    type made = result.is;
    made[asked] = gradient;
    return made;
  }
  type made;
  made.ndim = result.is.ndim;
  for (int d = 0; d < made.ndim; ++d) made.shape[d] = result.is.shape[d];
  made.holds = result.is.holds;
  return made;
}

}  // namespace

int typed_port::find(std::string_view count) const {
  for (int d = 0; d < of->shape.ndim; ++d)
    if (of->shape.dim[d].count == count) return d;
  return -1;
}

row_typing::row_typing(const trace& t, const rankc::op& o) : op_(o) {
  for (const traced_port& p : traced_ports(o)) {
    const bool is_gradient = p.result >= 0 && o.adds_to[p.result] >= 0;
    (p.result < 0 ? operands_ : results_)
        .push_back({p.of, t.values[static_cast<std::size_t>(p.value)], is_gradient});
  }
}

answer row_typing::sharded(const std::vector<std::string_view>& counts) const {
  placements given;
  for (const typed_port& x : operands_) {
    const int d = find_any(x, counts);
    given.push_back(d < 0 ? std::nullopt : std::optional(V(d)));
  }
  std::vector<rankc::placement> gradients;
  for (const typed_port& y : results_)
    gradients.push_back(find_any(y, counts) < 0 ? I : V(find_any(y, counts)));
  return ask(given, gradients);
}

answer row_typing::pending(int operand) const {
  placements given(operands_.size());
  for (std::size_t i = 0; i < given.size(); ++i)
    if (operand < 0 ? operands_[i].may_be_pending() : static_cast<int>(i) == operand) given[i] = P;
  return ask(given, std::vector<rankc::placement>(results_.size(), I));
}

/// If a placement is left open, the first combination of R and I that the rule accepts is used.
answer row_typing::ask(const placements& given, const std::vector<rankc::placement>& gradients) const {
  std::vector<std::size_t> open;
  std::vector<rankc::placement> all;
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (!given[i]) open.push_back(i);
    all.push_back(given[i].value_or(R));
  }
  for (unsigned choice = 0; choice < 1u << open.size(); ++choice) {
    for (std::size_t k = 0; k < open.size(); ++k) all[open[k]] = choice >> k & 1 ? I : R;
    if (answer made = ask_exactly(all, gradients)) return made;
  }
  return std::nullopt;
}

answer row_typing::ask_exactly(const std::vector<rankc::placement>& given,
                               const std::vector<rankc::placement>& gradients) const {
  std::vector<type> in, out;
  for (std::size_t i = 0; i < operands_.size(); ++i) {
    in.push_back(operands_[i].is);
    in.back()[asked] = given[i];
  }
  for (std::size_t i = 0; i < results_.size(); ++i) out.push_back(unplaced(results_[i], gradients[i]));
  complaint c{op_.kind->name, {}, op_.from};
  op_.kind->rule(c, in, out.data(), op_);
  if (c.said) return std::nullopt;
  placed_results made;
  for (const type& y : out) {
    made.at.push_back(y[asked]);
    made.has_maximum |= y.pending_max;
  }
  return made;
}

}  // namespace rankc::codegen
