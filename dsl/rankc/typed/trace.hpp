// SPDX-License-Identifier: Apache-2.0
// A trace is the op list that a layer's forward function leaves behind, and the backward list derived from it by
// each op's dual. Every op is typed as it is appended; the first broken rule is kept as a sentence that starts with
// the user's file and line. The same code runs in the compiler and in the generator.
#pragma once
#include <rankc/text.hpp>
#include <rankc/typed/type.hpp>

#include <cstddef>
#include <initializer_list>
#include <span>
#include <vector>

namespace rankc {

struct here {
  const char* file = "";
  int line = 0;
};

struct trace;
struct op;

struct value {
  trace* in = nullptr;
  int id = -1;
};
struct weight {
  trace* in = nullptr;
  int id = -1;
};

/// An operand that remembers the line it was written on.
struct operand {
  value v;
  here from;
  constexpr operand(value x, const char* file = __builtin_FILE(), int line = __builtin_LINE()) : v(x), from{file, line} {}
};

/// A kind of op: its name (also the kernel's) and the function that appends its backward ops; `stop_gradient` where there
/// are none. An op that a gradient reaches must have one.
struct op_def {
  std::string_view name;
  void (*dual)(trace&, const op&, value gradient) = nullptr;
  bool communicates = false;
};

/// What some ops need beyond their operands' shapes.
struct attributes {
  int rows = 0, seq = 0;  // attention and positions: sequences per rank and their length
  double number = 0;      // rope: theta; cross_entropy: the loss's scale
};

struct op {
  const op_def* kind = nullptr;
  int in[6]{-1, -1, -1, -1, -1, -1}, out[3]{-1, -1, -1};
  int weight[2]{-1, -1};
  bool writes_gradient = false;  // of its weights, instead of reading them
  axis over = axis::tp;          // conversions
  int along = -1;
  attributes with{};
  here from{};  // the line that made it, or whose backward it is
};

/// The dual of an op through which no gradient flows.
constexpr void stop_gradient(trace&, const op&, value) {}

enum class initial : unsigned char { zeros, ones, normal };

struct weight_info {
  std::string_view name;
  type holds;  // I on an axis: the same on every rank; V: sharded
  initial start = initial::zeros;
  double std = 0;
  here from{};
  bool tied = false;  // the parameter of this name of an earlier layer, not one of its own
  type gradient{};
  bool has_gradient = false;
};

struct shard {
  axis over;
  std::string_view along;
};

using types = std::span<const type>;

/// What a rule says about one application of an op; the first complaint counts.
struct complaint {
  std::string_view op, weight;
  here from;
  sentence text{};
  bool said = false;

  constexpr sentence& begin() {
    said = true;
    std::string_view f = from.file;
    if (auto slash = f.rfind('/'); slash != f.npos) f.remove_prefix(slash + 1);
    text << f << ":" << from.line << ": " << op;
    if (!weight.empty()) text << " '" << weight << "'";
    return text << ": ";
  }
  static constexpr void put(sentence& s, const type& t, placement p) {
    if (p == R) s << "replicated (R)";
    else if (p == I) s << "invariant (I)";
    else if (p == P) s << (t.pending_max ? "a pending maximum (P)" : "a pending sum (P)");
    else s << "sharded along " << t.shape[p.along].name << " (V)";
  }
  /// "(tokens=64, hidden=32)"
  static constexpr void put_shape(sentence& s, const type& t) {
    s << "(";
    for (int i = 0; i < t.ndim; ++i) s << (i ? ", " : "") << t.shape[i].name << "=" << t.shape[i].size;
    s << ")";
  }
  /// "<who> is <found> over <axis>; expected <expected>: <remedy>"
  constexpr placement found(axis a, std::string_view who, const type& t, std::string_view expected, std::string_view remedy) {
    if (said) return t[a];
    sentence& s = begin();
    s << who << " is ";
    put(s, t, t[a]);
    s << " over " << name(a) << "; expected " << expected << ": " << remedy;
    return t[a];
  }
};

struct trace {
  std::vector<type> values;
  std::vector<op> ops;  // forward ops, then backward ops
  std::size_t forward_ops = 0;
  std::vector<weight_info> weights;
  std::vector<sentence> said;  // at most one: what follows a mistake is a consequence
  std::vector<int> gradients;  // of each value; -1: none
  int input = -1, result = -1, result_gradient = -1;
  here backward_of{};  // while backward is derived

  constexpr value add(const type& t) {
    values.push_back(t);
    return {this, static_cast<int>(values.size()) - 1};
  }
  constexpr const type& of(value v) const { return values[v.id]; }
  constexpr void refuse(const complaint& c) {
    if (said.empty()) said.push_back(c.text);
  }

  /// Declare a parameter: the same on every rank but along the shards named.
  constexpr weight parameter(std::string_view name, std::initializer_list<dim> shape, std::initializer_list<shard> by,
                             initial start, double std = 0, const char* file = __builtin_FILE(),
                             int line = __builtin_LINE()) {
    return declare(weight_info{name, {}, start, std, {file, line}}, shape, by);
  }
  /// The parameter of that name of an earlier layer, where both layers stand alone: one tensor, one gradient. It starts
  /// as that layer says.
  constexpr weight tied(std::string_view name, std::initializer_list<dim> shape, std::initializer_list<shard> by,
                        const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return declare(weight_info{.name = name, .holds = {}, .from = {file, line}, .tied = true}, shape, by);
  }

  /// Append one op with one or more results. `rule` fills the results' types or complains.
  template <int Results = 1, class Rule>
  constexpr value apply(const op_def& kind, std::initializer_list<value> in, here from, Rule rule, op o = {}) {
    o.kind = &kind;
    o.from = backward_of.line ? backward_of : from;
    type ts[6], results[3];
    int n = 0;
    bool bad = false;
    for (value v : in) {
      ts[n] = of(v);
      bad |= ts[n].bad;
      o.in[n++] = v.id;
    }
    if (!bad) {
      complaint c{kind.name, o.weight[0] < 0 ? std::string_view{} : weights[o.weight[0]].name, o.from};
      rule(c, types(ts, n), results);
      if (c.said) refuse(c);
      bad = c.said;
    }
    for (int i = 0; i < Results; ++i) {
      results[i].bad = bad;
      o.out[i] = add(results[i]).id;
    }
    ops.push_back(o);
    return {this, o.out[0]};
  }

  /// Append an op that adds to the gradient of its weights.
  template <class Rule>
  constexpr void contribute(const op_def& kind, std::initializer_list<value> in, Rule rule, op o) {
    o.writes_gradient = true;
    o.kind = &kind;
    o.from = backward_of;
    type ts[6];
    int n = 0;
    for (value v : in) {
      ts[n] = of(v);
      if (ts[n].bad) return;
      o.in[n++] = v.id;
    }
    for (int w : o.weight) {
      if (w < 0) continue;
      weight_info& info = weights[w];
      complaint c{kind.name, info.name, o.from};
      type g = info.holds;
      for (axis a : axes) g[a] = rule(c, types(ts, n), info.holds, a);
      for (axis a : axes)
        if (!c.said && info.holds[a].k == placement::V && g[a] != info.holds[a])
          c.begin() << "the gradient is not sharded like the weight over " << name(a);
      for (axis a : axes)
        if (!c.said && info.has_gradient && g[a] != info.gradient[a]) {
          complaint::put(c.begin() << "the weight's gradient is ", g, g[a]);
          complaint::put(c.text << " over " << rankc::name(a) << " here, but at another use it is ", info.gradient,
                         info.gradient[a]);
          c.text << ": use the weight on values of one placement";
        }
      if (c.said) refuse(c);
      info.gradient = g;
      info.has_gradient = true;
    }
    ops.push_back(o);
  }

  constexpr value gradient_of(int id) { return {this, gradients[id]}; }
  constexpr void give_gradient(int id, value g);
  constexpr void derive_backward(value root);

 private:
  constexpr weight declare(weight_info w, std::initializer_list<dim> shape, std::initializer_list<shard> by) {
    complaint c{"parameter", w.name, w.from};
    check_name(c, w.name);
    for (const dim& d : shape) {
      check_dim(c, d);
      w.holds.shape[w.holds.ndim++] = d;
    }
    for (const shard& s : by) place(c, w.holds, s);
    for (const weight_info& other : weights)
      if (other.name == w.name && !c.said)
        c.begin() << "line " << other.from.line << " of this layer declares one of that name; use that one twice, "
                  << "or take another name";
    if (c.said) refuse(c);
    weights.push_back(w);
    return {this, static_cast<int>(weights.size()) - 1};
  }
  static constexpr void check_name(complaint& c, std::string_view name) {
    if (!is_name(name)) c.begin() << "it has no legal name; " << legal_names;
  }
  static constexpr void check_dim(complaint& c, const dim& d) {
    if (c.said) return;
    if (!is_name(d.name) || (d.unit != 1 && !is_name(d.unit_name)))
      c.begin() << "a dim is named '" << (is_name(d.name) ? d.unit_name : d.name) << "'; " << legal_names;
    else if (d.size < 1 || d.unit < 1 || d.size % d.unit)
      c.begin() << "dim " << d.name << "=" << d.size << " is in units of " << d.unit << "; expected one whole unit or more";
  }
  /// Shard the dim that `s` names over its axis.
  static constexpr void place(complaint& c, type& t, const shard& s) {
    if (c.said) return;
    const int along = t.find(s.along);
    if (along < 0) {
      complaint::put_shape(c.begin() << "it is ", t);
      c.text << " and has no dim '" << s.along << "' to shard over " << rankc::name(s.over);
    } else if (t.ndim == 2 && t.shape[0].name == t.shape[1].name) {
      complaint::put_shape(c.begin() << "it is ", t);
      c.text << ", and either dim is '" << s.along << "'; give the two names of their own, one of them to be sharded over "
             << rankc::name(s.over);
    } else {
      t[s.over] = V(along);
    }
  }
};

}  // namespace rankc
