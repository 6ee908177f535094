// SPDX-License-Identifier: Apache-2.0
// Autodiff: the view of an op that its backward rule gets, the two ops that autodiff adds, and the reverse
// walk over a trace. The gradient of a value is the sum over its uses. Its placement must be the dual of the
// value's: P for R, R for P, else the same.
#pragma once
#include <rankc/trace/placement_rules.hpp>

namespace rankc {

/// The result of an op at index `place`, from its first result.
constexpr value result(value first, int place) { return {first.in, first.id + place}; }

/// Two results of one op.
struct value_pair {
  value first, second;
};

/// The view of an op that its backward rule gets: operands by port name, and gradients of results.
struct backward {
  trace& t;
  const op of;

  constexpr value operator[](std::string_view port_name) const { return {&t, id(port_name)}; }
  /// The gradient of a result; zeros if nothing uses the result.
  constexpr value gradient(std::string_view port_name) const;
  /// Appends a backward op with the attributes of the forward op.
  constexpr value apply(const op_row& kind, std::initializer_list<value> in) const {
    return t.apply(kind, in, {}, {.with = of.with});
  }
  /// Adds `g` to the gradient of an input.
  constexpr void give(std::string_view port_name, value g) const { t.give_gradient(id(port_name), g); }
  /// Appends a backward op whose outputs are added to the gradients of `parameters`. Nothing is appended if
  /// all are frozen.
  /// Errors: RC210 if only some are frozen.
  constexpr void contribute(std::initializer_list<std::string_view> parameters, const op_row& kind,
                            std::initializer_list<value> in) const {
    int found[max_outputs]{-1, -1, -1}, n = 0;
    for (std::string_view p : parameters) found[n++] = t.find_parameter(id(p));
    op o{.with = of.with};
    int trained = 0;
    for (int j = 0; j < n; ++j) {
      o.adds_to[j] = found[j];
      trained += t.weights[found[j]].trainable;
    }
    if (trained == n) t.contribute(kind, in, o);
    else if (trained > 0) t.refuse_half_frozen(of, found, n);
  }

 private:
  constexpr int id(std::string_view port_name) const {
    int read = 0, written = 0;
    for (const port& p : of.kind->used_ports()) {
      if (!p.is_traced()) continue;
      const int at = p.is_written() ? of.out[written++] : of.in[read++];
      if (p.name == port_name) return at;
    }
    throw no_such_name{port_name};
  }
};

namespace ops {

inline constexpr op_row add{
    .name = "add",
    .ports = {out("y", "tokens width").over("a", "b"), in("a", "tokens width"), in("b", "tokens width")},
    .rule = placement_rules::sum,
    .dual =
        [](backward& b) {
          b.give("a", b.gradient("y"));
          b.give("b", b.gradient("y"));
        },
    .sizes = "tokens*width",
    .commutative = true,
    .of_rings = true};
/// The gradient of an unused result, and the start of a sum.
inline constexpr op_row zeros{.name = "zeros",
                              .ports = {out("y", "tokens width")},
                              .dual = stop_gradient,
                              .kernel = "clear",
                              .sizes = "tokens*width"};

}  // namespace ops

constexpr void trace::give_gradient(int id, value g) {
  if (of(g).bad || values[id].bad || values[id].is_input || values[id].holds == element::index) return;
  if (of(g) != cotangent(values[id]) && said.empty()) {
    complaint c{"backward", {}, backward_of};
    sentence& s = c.begin();
    s << "a gradient has the wrong placement";
    for (axis a : axes)
      if (of(g)[a] != cotangent(values[id][a])) {
        s << ": over " << name(a) << " it is ";
        complaint::put(s, of(g), of(g)[a]);
        s << " for a value that is ";
        complaint::put(s, values[id], values[id][a]);
      }
    refuse(c);
  }
  gradients[id] = gradients[id] < 0 ? g.id : apply(ops::add, {gradient_of(id), g}).id;
}

constexpr void trace::refuse_half_frozen(const op& of, const int* parameters, int n) {
  int frozen = 0, trained = 0;
  for (int j = 0; j < n; ++j) (weights[parameters[j]].trainable ? trained : frozen) = parameters[j];
  complaint c{of.kind->name, weights[frozen].name, of.from};
  c.begin() << "it is frozen and '" << weights[trained].name
            << "' is not, and one kernel makes the gradients of both; freeze both, or neither";
  refuse(c);
}

constexpr void trace::contribute(const op_row& kind, std::initializer_list<value> in, op o) {
  for (value v : in)
    if (of(v).bad) return;
  apply(kind, in, {}, o);
  for (int j = 0; j < max_outputs; ++j) {
    if (o.adds_to[j] < 0) continue;
    weight_info& info = weights[o.adds_to[j]];
    const type& g = values[ops.back().out[j]];
    complaint c{kind.name, info.name, backward_of};
    for (axis a : axes)
      if (!c.said && info.holds[a].k == placement::V && g[a] != info.holds[a])
        c.begin() << "the gradient is not sharded like the weight over " << name(a);
    for (axis a : axes)
      if (!c.said && info.has_gradient && g[a] != info.gradient[a]) {
        complaint::put(c.begin() << "the weight's gradient is ", g, g[a]);
        complaint::put(c.text << " over " << name(a) << " here, but at another use it is ", info.gradient,
                       info.gradient[a]);
        c.text << ": use the weight on values of one placement";
      }
    if (c.said) refuse(c);
    info.gradient = g;
    info.has_gradient = true;
  }
}

constexpr void trace::derive_backward(value root) {
  forward_ops = ops.size();
  result = root.id;
  if (!said.empty()) return;
  gradients.assign(values.size(), -1);
  gradients[root.id] = result_gradient = add(cotangent(of(root))).id;
  for (int loss : side_losses) gradients[loss] = add(cotangent(values[loss])).id;
  for (carried_value& c : carried)
    if (of(root).ndim != 0) gradients[c.result] = c.gradient = add(cotangent(values[c.result])).id;
  for (std::size_t i = forward_ops; i-- > 0;) {
    const op o = ops[i];
    backward_of = o.from;
    bool reached = false;
    for (int made : o.out) reached |= made >= 0 && gradients[made] >= 0;
    if (!reached) continue;
    if (o.kind->dual) {
      backward b{*this, o};
      o.kind->dual(b);
      continue;
    }
    complaint c{o.kind->name, {}, o.from};
    c.begin() << "a gradient reaches it, and it has no dual; give its op_row one, or stop_gradient where "
                 "none flows";
    return refuse(c);
  }
  for (const weight_info& w : weights) {
    if (w.has_gradient || (!w.trainable && is_read(w.id))) continue;
    complaint c{"parameter", w.name, w.from};
    if (!w.trainable) c.begin() << "no op reads it; use it, or leave it out";
    else
      c.begin() << "nothing that it makes reaches the layer's result, so that it has no gradient; use it, or "
                   "leave it out";
    refuse(c);
  }
}

constexpr value backward::gradient(std::string_view port_name) const {
  const int made = id(port_name);
  if (t.gradients[made] >= 0) return t.gradient_of(made);
  return t.make(ops::zeros, cotangent(t.values[made]));
}

}  // namespace rankc
