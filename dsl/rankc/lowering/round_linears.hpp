// SPDX-License-Identifier: Apache-2.0
// Casts the operands of linear layers to fp8. An operand is cast before the first GEMM that reads it.
// Backward reuses the cast activations of forward, but casts weights again, so that no fp8 weights are kept.
// If only a cast reads the result of an op, the op writes fp8 directly, if the target has the kernel.
#pragma once
#include <rankc/ops/fp8.hpp>
#include <rankc/lowering/node.hpp>
#include <rankc/contract/fp8.hpp>

namespace rankc::lowering {

namespace detail {

class rounder {
 public:
  constexpr rounder(layer_program& p, const layer_setting& s) : p_(p), s_(s) {}

  constexpr void run() {
    round(p_.forward);
    std::erase_if(known_, [&](const rounded& r) { return p_.values[r.of.at.value].where == space::weight; });
    round(p_.backward);
    for (nodes* list : {&p_.forward, &p_.backward})
      for (int i = 0; i < static_cast<int>(list->size()); ++i)
        if (const int cast = find_cast((*list)[i], *list); cast >= 0) join(*list, i, cast);
  }

 private:
  /// An operand and its fp8 copy.
  struct rounded {
    port_use of;
    element as;
    int value;
  };

  constexpr void round(nodes& list) {
    nodes all;
    for (node& n : list) {
      const op_row* row = is_narrowed(n) ? ops::in_fp8(*n.row, s_.linears) : nullptr;
      for (std::size_t p = 0; row && p < n.ports.size(); ++p)
        if (is_fp8(row->ports[p].holds)) n.ports[p] = take(n, p, row->ports[p].holds, list, all);
      if (row) n.row = row;
      n.each_write([&](const port_use& w) {  // the written value is new, so its cast is stale
        std::erase_if(known_, [&](const rounded& r) { return r.of.at.value == w.at.value; });
      });
      all.push_back(std::move(n));
    }
    list = std::move(all);
  }

  /// True if an fp8 GEMM does not support the row count of a weight in a packed dim.
  constexpr bool has_odd_part(const local_shape& s) const {
    for (int d = 0; d < s.ndim; ++d) {
      if (s.dims[d].composed < 0 || p_.composed[s.dims[d].composed].how != composed_dim::packed) continue;
      for (const int parameter : p_.composed[s.dims[d].composed].parameters)
        if (!fits_fp8(p_.parameters[parameter].rows)) return true;
    }
    return false;
  }

  /// True if the GEMM runs in fp8: all sizes are multiples of 16, and it is neither a router's nor LoRA's.
  constexpr bool is_narrowed(const node& n) const {
    if (!ops::has_fp8(*n.row)) return false;
    for (std::size_t p = 0; p < n.ports.size(); ++p) {
      const local_shape& s = p_.shape(n.ports[p]);
      const value& v = p_.values[n.ports[p].at.value];
      const bool is_matrix = s.ndim == 2 && (v.where == space::weight || v.where == space::gradient);
      if (is_matrix && (s.dims[0].name == "experts" || !p_.parameters[v.of].name.part.empty())) return false;
      if (!fits_fp8(s) || has_odd_part(s)) return false;
    }
    return true;
  }

  /// The fp8 copy of an operand. If there is none yet, appends the cast to `all`.
  constexpr port_use take(const node& n, std::size_t p, element as, const nodes& list, nodes& all) {
    const port_use& of = n.ports[p];
    for (const rounded& r : known_)
      if (r.of.at == of.at && r.of.run == of.run && r.as == as) return {{r.value, 0}, of.shape};
    const value& source = p_.values[of.at.value];
    const bool is_weight = source.where == space::weight;
    value made{.holds = static_cast<element_kind>(as), .shape = of.shape, .name = source.name};
    made.bytes =
        runtime::fp8_bytes(static_cast<std::size_t>(p_.shape(of).dims[0].width()),
                           static_cast<std::size_t>(p_.shape(of).dims[1].width()), as == element::e4m3_rows);
    if (of.run >= 0) made.name = {name_source::packed_weight, p_.shape(of).dims[0].composed};
    made.name.again = is_weight && &list == &p_.backward;
    made.name.rounded = fp8_name(as);
    known_.push_back({of, as, p_.add(made)});
    node cast{.row = ops::cast_to(as, is_weight)};
    cast.for_weights = n.for_weights;
    cast.repeatable = is_weight ? n.repeatable : may_repeat(of.at.value, n, all);
    cast.ports = {{{known_.back().value, 0}, of.shape}, of};
    all.push_back(std::move(cast));
    return all.back().ports.front();
  }
  /// True if recomputation may repeat the cast of an activation: its producer may be repeated or, for a layer
  /// input, the GEMM.
  constexpr bool may_repeat(int value, const node& product, const nodes& all) const {
    bool may = product.repeatable;
    for (const node& n : all)
      n.each_write([&](const port_use& w) { may = w.at.value == value ? n.repeatable : may; });
    return may;
  }

  /// The variant of a row that writes fp8; nullptr if the target lacks the kernel.
  constexpr const op_row* maker_in_fp8(const op_row& row) const {
    for (const ops::narrowed_row& m : ops::fp8_makers)
      if (m.of == &row && !kernel_of(*m.by(s_.linears), s_.to).name.empty()) return m.by(s_.linears);
    return nullptr;
  }
  /// The index of the cast that is the only reader of the result of `maker`, if `maker` has a variant that
  /// does the same cast; -1 if there is none.
  constexpr int find_cast(const node& maker, const nodes& list) const {
    const op_row* row = maker_in_fp8(*maker.row);
    if (!row) return -1;
    const slice made = maker.ports.front().at;
    long long elements = 0;
    bool in_one = made.offset == 0 && p_.is_inner(made) && p_.mentions(made.value) == 2;
    for (std::size_t p = 0; p < maker.ports.size(); ++p) {
      if (!is_fp8(row->ports[p].holds)) continue;
      in_one &= maker.ports[p].at.value == made.value;
      elements += p_.shape(maker.ports[p]).elements();
    }
    if (!in_one) return -1;
    for (int i = 0; i < static_cast<int>(list.size()); ++i) {
      const node& n = list[i];
      if (n.ports.size() != 2 || !is_fp8(n.row->ports[0].holds) || !(n.ports[1].at == made)) continue;
      const bool is_same =
          n.row->ports[0].holds == row->ports[0].holds && p_.shape(n.ports[1]).elements() == elements;
      return is_same && n.repeatable == maker.repeatable && n.for_weights == maker.for_weights ? i : -1;
    }
    return -1;
  }
  constexpr void join(nodes& list, int maker, int cast) {
    node& n = list[maker];
    const slice made = n.ports.front().at;
    n.row = maker_in_fp8(*n.row);
    for (port_use& u : n.ports)
      if (u.at.value == made.value)
        u.at = {list[cast].ports[0].at.value, u.at.offset / s_.bytes(element_kind::real)};
    list.erase(list.begin() + cast);
  }

  layer_program& p_;
  const layer_setting& s_;
  std::vector<rounded> known_;
};

}  // namespace detail

constexpr void round_linears(layer_program& p, const layer_setting& s) { detail::rounder(p, s).run(); }

}  // namespace rankc::lowering
