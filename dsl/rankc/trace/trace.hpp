// SPDX-License-Identifier: Apache-2.0
// A trace is the list of ops that a layer's forward function records, followed by the backward ops derived
// from it. Every op is type-checked when it is appended. The first error is kept as a sentence that starts
// with the user's file and line; RC210 reports it. The same code runs in the compiler and in the generator.
#pragma once
#include <rankc/recipe/training.hpp>
#include <rankc/trace/complaint.hpp>
#include <rankc/trace/named_input.hpp>
#include <rankc/trace/parameter.hpp>

#include <cstddef>
#include <initializer_list>
#include <vector>

namespace rankc {

struct trace;

/// A tensor of a layer: the result of an op, an input of the layer, or a parameter.
struct value {
  trace* in = nullptr;
  int id = -1;
};

/// An operand and the source line of the call.
struct operand {
  value v;
  here from;
  constexpr operand(value x, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : v(x), from{file, line} {}
};

/// One op of a layer. Inputs and outputs are indices of values, in the order of the row's ports.
struct op {
  const op_row* kind = nullptr;
  int in[max_inputs]{-1, -1, -1, -1, -1, -1, -1}, out[max_outputs]{-1, -1, -1};
  int adds_to[max_outputs]{-1, -1, -1};  // the parameter to whose gradient an output is added
  axis over = no_axis;                   // the axis that the op converts over
  int along = -1;
  attributes with{};
  here from{};  // the source line of the op, or of the forward op if this is backward
  constexpr double number() const { return with.*kind->number.of; }
};

/// The name that a model gives to a value.
struct value_name {
  std::string_view name;
  int id = -1;  // the value
  here from{};
};

struct trace {
  std::vector<type> values;
  std::vector<op> ops;  // forward ops, then backward ops
  std::size_t forward_ops = 0;
  std::vector<weight_info> weights;
  std::vector<value_name> names;  // the named values
  std::vector<int> side_losses;   // losses in addition to the last layer's result
  std::vector<sentence> said;     // at most one error; later ones would follow from it
  std::vector<int> gradients;     // the gradient of each value; -1: none
  int input = -1, result = -1, result_gradient = -1;
  std::vector<input_value> inputs;     // all inputs of the plan's step
  std::vector<carried_value> carried;  // the values that layers pass on with their results
  int reported = -1;                   // a value that a step keeps of each microbatch; -1: none
  here backward_of{};                  // the forward op whose backward is being derived
  const training* recipe = nullptr;    // decides which parameters are trained; set while forward is traced

  constexpr value add(const type& t) {
    values.push_back(t);
    return {this, static_cast<int>(values.size()) - 1};
  }
  /// Appends a parameter.
  constexpr value add(weight_info w) {
    const value v = add(w.holds);
    w.id = v.id;
    weights.push_back(w);
    return v;
  }
  constexpr const type& of(value v) const { return values[v.id]; }
  constexpr void refuse(const complaint& c) {
    if (said.empty()) said.push_back(c.text);
  }
  /// The index of the parameter that a value is; -1 if it is not a parameter.
  constexpr int find_parameter(int id) const {
    for (std::size_t w = 0; w < weights.size(); ++w)
      if (weights[w].id == id) return static_cast<int>(w);
    return -1;
  }

  /// Declares a parameter. It is the same on every rank, except for the dims sharded by `by`.
  /// Shapes: at most two dims.
  /// Errors: RC210, RC224.
  constexpr value parameter(std::string_view name, std::initializer_list<dim> shape,
                            std::initializer_list<shard> by, initial start, double std = 0,
                            const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return declare(weight_info{name, {}, start, std, {file, line}}, std::span(shape.begin(), shape.size()),
                   std::span(by.begin(), by.size()));
  }
  /// Declares a bias of a router's scores. It is updated from choice counts, to balance the load of the
  /// experts.
  /// Shapes: (experts).
  /// Errors: RC210.
  constexpr value parameter(std::string_view name, dim experts, load_balance by,
                            const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    weight_info w{name, {}, initial::zeros, 0, {file, line}};
    w.balances = by;
    refuse_balance(w);
    return declare(w, std::span(&experts, 1), {});
  }
  /// Declares the parameter of a handle.
  constexpr value parameter(const parameter_handle& p, const char* file = __builtin_FILE(),
                            int line = __builtin_LINE()) {
    return declare(weight_info{p.name, {}, p.start, p.std, {file, line}, p.from},
                   std::span(p.shape).first(p.ndim), std::span(p.by).first(p.n_shards));
  }

  /// Excludes a parameter from training. It keeps its initial, or loaded, values.
  /// Errors: RC210 if w is not a parameter.
  constexpr value freeze(operand w) {
    if (const int p = find_parameter(w.v.id); p >= 0) {
      weights[p].trainable = false;
      return w.v;
    }
    complaint c{"frozen", {}, w.from};
    c.begin() << "the value is not a parameter; expected one, of t.parameter(...)";
    refuse(c);
    return w.v;
  }

  /// Names the result of an op. Generated text uses the name, and d_<name> for its gradient.
  /// Errors: RC210.
  constexpr value set_name(std::string_view name, operand x) {
    complaint c{"as", name, x.from};
    if (!is_identifier(name))
      c.begin() << "it is no legal identifier; a value's name has letters, digits and '_', and begins with "
                   "no digit";
    for (const value_name& other : names)
      if (other.name == name && !c.said)
        c.begin() << "line " << other.from.line
                  << " of this layer names another value so; names are unique in a layer";
      else if (other.id == x.v.id && !c.said)
        c.begin() << "line " << other.from.line << " of this layer names the value '" << other.name
                  << "'; it has one name";
    if (!c.said && !is_made(x.v.id))
      c.begin() << "the value is "
                << (find_parameter(x.v.id) >= 0 ? "a parameter, which has a name" : "an input of the layer")
                << "; name what an op made";
    if (c.said) refuse(c);
    names.push_back({name, x.v.id, x.from});
    return x.v;
  }

  /// Adds a loss to the step's loss, in training and in evaluation, in addition to the layer's result.
  /// Shapes: loss is a scalar.
  /// Errors: RC210, RC212, RC260.
  constexpr void add_loss(operand loss) {
    const type& l = of(loss.v);
    if (l.bad) return;
    complaint c{"add_loss", {}, loss.from};
    if (l.ndim != 0) {
      complaint::put_shape(c.begin() << "the value is ", l);
      c.text << "; expected a loss, as cross_entropy makes";
    }
    for (axis a : axes) {
      if (row(a).shares == part::sequences || row(a).shares == part::positions) {
        if (l[a] != P)
          c.found(a, "the loss", l, "a pending sum (P)",
                  "make it of values that are sharded along the tokens");
      } else if (l[a] != I) {
        c.found(a, "the loss", l, "invariant (I)",
                l[a] == P ? "make it of whole values (all_gather, all_reduce)" : "each rank would count it");
      }
    }
    for (int other : side_losses)
      if (other == loss.v.id && !c.said) c.begin() << "the loss is added already; add it once";
    if (c.said) refuse(c);
    side_losses.push_back(loss.v.id);
  }
  constexpr bool is_side_loss(int id) const {
    for (int l : side_losses)
      if (l == id) return true;
    return false;
  }

  constexpr bool has_input(std::string_view name) const {
    for (const input_value& i : inputs)
      if (i.is.name == name && i.id >= 0) return true;
    return false;
  }
  /// The value of an input of the step.
  /// Errors: RC210 if the layer gets no input of this name.
  constexpr value read_input(std::string_view name, here from) {
    for (const input_value& i : inputs)
      if (i.is.name == name && i.id >= 0) return {this, i.id};
    complaint c{"input", name, from};
    sentence& s = c.begin() << "the layer gets no input of this name; its inputs are ";
    const char* between = "";
    for (const input_value& i : inputs) {
      if (i.id < 0) continue;
      s << between << i.is.name;
      between = ", ";
    }
    refuse(c);
    return add(type{.bad = true});
  }

  /// A carried value with what the layer has added so far; nullptr if the model carries none of this name.
  constexpr carried_value* find_carried(std::string_view name) {
    for (carried_value& c : carried)
      if (c.name == name) return &c;
    return nullptr;
  }

  /// Appends an op and returns its first result. `result` gives the others.
  constexpr value apply(const op_row& kind, std::initializer_list<value> in, here from = {}, op o = {}) {
    o.kind = &kind;
    o.from = backward_of.line ? backward_of : from;
    type inputs[max_inputs], outputs[max_outputs];
    bool bad = false;
    int n = 0;
    for (value v : in) {
      if (n == max_inputs) break;
      bad |= of(v).bad;
      inputs[n] = of(v);
      o.in[n++] = v.id;
    }
    complaint c{kind.name, name_of_parameter(o), o.from};
    if (!bad) type_results(c, o, types(inputs, n), outputs);
    if (c.said) refuse(c);
    for (int i = 0, made = kind.count(true); i < made && i < max_outputs; ++i) {
      outputs[i].bad = bad || c.said;
      outputs[i].is_input = false;
      o.out[i] = add(outputs[i]).id;
    }
    ops.push_back(o);
    return {this, o.out[0]};
  }

  /// Complains of a dim that has no legal name or is not a whole number of units.
  static constexpr void check_dim(complaint& c, const dim& d) {
    if (c.said) return;
    if (!is_name(d.name) || (d.unit != 1 && !is_name(d.unit_name)))
      c.begin() << "a dim is named '" << (is_name(d.name) ? d.unit_name : d.name) << "'; " << legal_names;
    else if (d.size < 1 || d.unit < 1 || d.size % d.unit)
      c.begin() << "dim " << d.name << "=" << d.size << " is in units of " << d.unit
                << "; expected one whole unit or more";
  }

  /// Appends an op without operands whose result has type `t`.
  constexpr value make(const op_row& kind, const type& t) {
    op o{.kind = &kind, .from = backward_of};
    o.out[0] = add(t).id;
    ops.push_back(o);
    return {this, o.out[0]};
  }

  constexpr value gradient_of(int id) { return {this, gradients[id]}; }
  constexpr void give_gradient(int id, value g);
  constexpr void derive_backward(value root);
  /// Appends an op whose outputs are added to the gradients of the parameters in `o.adds_to`.
  constexpr void contribute(const op_row& kind, std::initializer_list<value> in, op o);
  constexpr void refuse_half_frozen(const op& of, const int* parameters, int n);

 private:
  constexpr bool is_read(int id) const {
    for (std::size_t i = 0; i < forward_ops; ++i)
      for (int read : ops[i].in)
        if (read == id) return true;
    return false;
  }
  constexpr bool is_made(int id) const {
    for (const op& o : ops)
      for (int made : o.out)
        if (made == id) return true;
    return false;
  }
  constexpr parameter_name name_of_parameter(const op& o) const {
    for (int j : o.adds_to)
      if (j >= 0) return weights[j].name;
    for (int i : o.in)
      if (const int w = i < 0 ? -1 : find_parameter(i); w >= 0) return weights[w].name;
    return {};
  }
  constexpr void type_results(complaint& c, const op& o, types in, type* out) const {
    check_operands(c, o, in);
    if (c.said) return;
    fill_results(*o.kind, in, out);
    for (int j = 0; j < max_outputs; ++j)
      if (o.adds_to[j] >= 0) out[j] = weights[o.adds_to[j]].holds;
    if (!o.kind->rule) {
      c.begin() << "it has no typing rule; give its op_row one";
      return;
    }
    refuse_passed(c, o, in);
    if (!c.said) o.kind->rule(c, in, out, o);
    if (!c.said && o.kind->converts == conversion::none) check_shapes(c, *o.kind, in, out);
  }
  /// Complains if an op that is not made for rings gets rows from another rank of the ring, or heads that are
  /// sharded inside a group.
  static constexpr void refuse_passed(complaint& c, const op& o, types in) {
    if (o.kind->of_rings) return;
    for (const type& x : in) {
      for (int d = 0; d < x.ndim; ++d)
        if (x.shape[d].passed && !c.said)
          c.begin() << "the value's " << x.shape[d].name << " have been shifted by " << x.shape[d].passed
                    << " ranks; expected the rank's own (shift and ring_attention take others')";
      if (x[axis::cp].outer >= 0 && o.kind->converts == conversion::none)
        c.found(axis::cp, "the value", x, "the rank's own tokens",
                "all_to_all it back first (shift and ring_attention take such)");
    }
  }
  /// Complains unless the number of operands is right and parameters are given where the row expects them.
  constexpr void check_operands(complaint& c, const op& o, types in) const {
    const int expected = o.kind->count(false);
    if (static_cast<int>(in.size()) != expected) {
      c.begin() << "it is given " << static_cast<int>(in.size()) << " operands; its op_row has " << expected
                << " to read";
      return;
    }
    int n = 0;
    for (const port& p : o.kind->used_ports()) {
      if (p.as != use::in && p.as != use::parameter) continue;
      const bool given = find_parameter(o.in[n++]) >= 0;
      if (given == (p.as == use::parameter) || c.said) continue;
      c.begin() << "operand '" << p.name << "' is "
                << (given ? "a parameter; expected a value that an op made"
                          : "not a parameter; expected one, of t.parameter(...)");
    }
  }
  /// Sets the outputs' shapes from the row's symbols, invariant (I) over all axes. The typing rule starts
  /// from these.
  static constexpr void fill_results(const op_row& row, types in, type* out) {
    for (const port& p : row.used_ports()) {
      if (!p.is_written()) continue;
      type& t = *out++;
      t.ndim = static_cast<signed char>(p.shape.ndim);
      t.holds = p.holds;
      for (int d = 0; d < p.shape.ndim; ++d) {
        const port_dim& wanted = p.shape.dim[d];
        const dim* known = wanted.number ? nullptr : find_dim(row, in, {}, wanted);
        if (known) t.shape[d] = *known;
        else t.shape[d] = dim{p.name, wanted.number ? wanted.number : 1};
      }
    }
  }
  /// The first dim with a symbol; nullptr if no operand has it.
  static constexpr const dim* find_dim(const op_row& row, types in, types out, const port_dim& wanted) {
    std::size_t read = 0, written = 0;
    for (const port& p : row.used_ports()) {
      if (!p.is_traced()) continue;
      const bool writes = p.is_written();
      const std::size_t at = writes ? written++ : read++;
      const types side = writes ? out : in;
      if (at >= side.size()) continue;
      for (int d = 0; d < p.shape.ndim && d < side[at].ndim; ++d)
        if (p.shape.dim[d].id == wanted.id) return &side[at].shape[d];
    }
    return nullptr;
  }
  /// Complains unless equal symbols have equal sizes.
  static constexpr void check_shapes(complaint& c, const op_row& row, types in, const type* out) {
    const types made(out, static_cast<std::size_t>(row.count(true)));
    std::size_t read = 0, written = 0;
    for (const port& p : row.used_ports()) {
      if (!p.is_traced()) continue;
      const type& t = p.is_written() ? made[written++] : in[read++];
      const auto wanted = [&](int d) {
        const port_dim& w = p.shape.dim[d];
        if (w.number) return w.number;
        const dim* first = find_dim(row, in, made, w);
        return first ? first->size : -1;  // -1: the symbol is new
      };
      bool fits = t.ndim == p.shape.ndim;
      for (int d = 0; fits && d < p.shape.ndim; ++d) fits = t.shape[d].size == wanted(d);
      if (fits || c.said) continue;
      complaint::put_shape(c.begin() << "operand '" << p.name << "' is ", t);
      c.text << "; its op_row says (";
      for (int d = 0; d < p.shape.ndim; ++d) {
        c.text << (d ? ", " : "") << p.shape.dim[d].count;
        if (wanted(d) >= 0) c.text << (p.shape.dim[d].number ? "" : "=") << wanted(d);
      }
      c.text << ")";
    }
  }

  constexpr value declare(weight_info w, std::span<const dim> shape, std::span<const shard> by) {
    complaint c{"parameter", w.name, w.from};
    check_name(c, w.name.declared);
    for (const dim& d : shape) {
      check_dim(c, d);
      w.holds.shape[w.holds.ndim++] = d;
    }
    for (const shard& s : by) place(c, w.holds, s);
    for (const weight_info& other : weights)
      if (other.name == w.name && !c.said)
        c.begin() << "line " << other.from.line
                  << " of this layer declares one of that name; use that one twice, "
                  << "or take another name";
    if (c.said) refuse(c);
    w.trainable = !recipe || recipe->trains(w.name.declared);
    return add(w);
  }
  constexpr void refuse_balance(const weight_info& w) {
    complaint c{"parameter", w.name, w.from};
    if (!(w.balances.rate > 0 && w.balances.rate <= 1))
      c.begin() << "its rate is " << w.balances.rate
                << "; expected a positive number, at most 1: 0.001 is usual";
    else if (recipe && !recipe->master_weights)
      c.begin() << "it is kept in bf16 alone, in which steps of " << w.balances.rate
                << " are lost; take master_weights=true, or leave out the bias";
    else if (recipe && recipe->reductions == bf16)
      c.begin() << "numbers of choices are summed in bf16, which has whole numbers up to 256; leave out "
                   "reductions=bf16, or the bias";
    if (c.said) refuse(c);
  }
  static constexpr void check_name(complaint& c, std::string_view name) {
    if (!is_name(name)) c.begin() << "it has no legal name; " << legal_names;
  }
  /// Shards the dim named by `s` over its axis.
  static constexpr void place(complaint& c, type& t, const shard& s) {
    if (c.said) return;
    const int along = t.find(s.along);
    if (along < 0) {
      complaint::put_shape(c.begin() << "it is ", t);
      c.text << " and has no dim '" << s.along << "' to shard over " << rankc::name(s.over);
    } else if (t.ndim == 2 && t.shape[0].name == t.shape[1].name) {
      complaint::put_shape(c.begin() << "it is ", t);
      c.text << ", and either dim is '" << s.along
             << "'; give the two names of their own, one of them to be sharded over " << rankc::name(s.over);
    } else {
      t[s.over] = V(along);
    }
  }
};

/// Names a value; names are unique in a layer.
/// Errors: RC210.
constexpr value as(std::string_view name, operand x) { return x.v.in->set_name(name, x); }

/// Excludes a parameter from training.
/// Errors: RC210 if w is not a parameter.
constexpr value frozen(operand w) { return w.v.in->freeze(w); }

/// Adds a loss to that of the step, e.g. a balance loss, a penalty, or the loss of a second head.
/// Shapes: loss is a scalar.
/// Errors: RC210, RC212, RC260.
constexpr void add_loss(operand loss) { loss.v.in->add_loss(loss); }

/// The global sizes of an op, over all ranks.
constexpr op_sizes sizes_of(const trace& t, const op& o) {
  op_sizes s(*o.kind);
  int read = 0, written = 0;
  for (int p = 0; p < o.kind->count_ports(); ++p) {
    const port& use = o.kind->ports[p];
    if (!use.is_traced()) continue;
    const type& v = t.values[use.is_written() ? o.out[written++] : o.in[read++]];
    for (int d = 0; d < v.ndim && d < use.shape.ndim; ++d) s.bind(p, d, v.shape[d].count(), v.shape[d].unit);
  }
  s.bind_attributes(o.with.rows, o.with.seq, o.with.ring, o.with.attention);
  return s;
}

}  // namespace rankc
