// SPDX-License-Identifier: Apache-2.0
// Selects nodes for the ops of a typed trace: a kernel, operands and local shapes. A conversion over one
// rank, or one that changes only the placement, needs no node.
#pragma once
#include <rankc/ops/conversions.hpp>
#include <rankc/ops/elementwise.hpp>
#include <rankc/ops/memory.hpp>
#include <rankc/lowering/node.hpp>
#include <rankc/stages/repeated_ops.hpp>

namespace rankc::lowering {

/// Thrown for an op that cannot be lowered although no rule refuses it: it has no kernel, or converts over an
/// unsupported axis. In a constant expression it stops compilation.
struct not_lowered {
  const op_row* kind;
  bool has_kernel;
  axis over;
};

namespace detail {

template <class Trace>
class selector {
 public:
  constexpr selector(const Trace& t, std::vector<layer_parameter> parameters, const layer_setting& s)
      : t_(t), s_(s), parameter_of_(t.values.size(), -1), gradient_of_(t.values.size(), -1) {
    out_.parameters = std::move(parameters);
    for (std::size_t w = 0; w < t_.weights.size(); ++w) parameter_of_[t_.weights[w].id] = static_cast<int>(w);
    for (const op& o : t_.ops)
      for (int j = 0; j < max_outputs; ++j)
        if (o.adds_to[j] >= 0) gradient_of_[o.out[j]] = o.adds_to[j];
  }

  constexpr layer_program run() {
    make_values();
    const std::vector<char> repeatable = find_repeatable(t_, s_.recompute);
    for (std::size_t i = 0; i < t_.ops.size(); ++i) {
      in_backward_ = i >= t_.forward_ops;
      nodes& list = in_backward_ ? out_.backward : out_.forward;
      const std::size_t before = list.size();
      select(t_.ops[i], list);
      for (std::size_t n = before; n < list.size(); ++n) list[n].repeatable = !in_backward_ && repeatable[i];
    }
    hand_on();
    hand_on_carried();
    return std::move(out_);
  }

 private:
  /// Creates a value for each value of the trace. Values that are one tensor get one class.
  constexpr void make_values() {
    std::vector<int> gradient(t_.weights.size(), -1);
    out_.values.reserve(t_.values.size() + 16);
    out_.shapes.reserve(t_.values.size() + 16);
    class_.reserve(t_.values.size());
    for (int v = 0; v < static_cast<int>(t_.values.size()); ++v) {
      const type& t = t_.values[v];
      const space where = place_of(v, t);
      class_.push_back(v);
      if (where == space::gradient) {
        int& first = gradient[gradient_of_[v]];
        if (first < 0) first = v;
        class_.back() = first;
      }
      add(where, where == space::gradient ? element_kind::wide : static_cast<element_kind>(t.holds),
          out_.add(local(t, s_.dims)), index_of(v), {name_source::traced, v, nullptr, is_named(v)});
    }
  }
  /// True if the model names a value, or names the value whose gradient it is.
  constexpr bool is_named(int v) const {
    for (const value_name& n : t_.names)
      if (n.id == v || (t_.gradients[n.id] >= 0 && t_.gradients[n.id] == v)) return true;
    return false;
  }
  /// The index of the parameter that a value is or to whose gradient it adds, or of the input that it is; 0
  /// for other values.
  constexpr int index_of(int v) const {
    if (parameter_of_[v] >= 0) return parameter_of_[v];
    return std::max({gradient_of_[v], input_of(v), 0});
  }
  /// The input of the step that a value is; -1 for other values.
  constexpr int input_of(int v) const {
    for (std::size_t i = 0; i < t_.inputs.size(); ++i)
      if (t_.inputs[i].id == v) return static_cast<int>(i);
    return -1;
  }
  constexpr space place_of(int v, const type& t) const {
    if (parameter_of_[v] >= 0) return space::weight;
    if (gradient_of_[v] >= 0) return space::gradient;
    if (input_of(v) >= 0) return space::input;
    return t.ndim == 0 && (v == t_.result || t_.is_side_loss(v)) ? space::loss : space::temp;
  }
  constexpr int add(space where, element_kind holds, int shape, int of, name_source name) {
    const std::size_t bytes =
        static_cast<std::size_t>(out_.shapes[static_cast<std::size_t>(shape)].elements()) * s_.bytes(holds);
    return out_.add({.where = where, .holds = holds, .shape = shape, .bytes = bytes, .of = of, .name = name});
  }

  // ---- operands
  constexpr int find(int v) const { return class_[v]; }
  constexpr port_use use_of(int v) const { return {{find(v), 0}, out_.values[v].shape}; }
  constexpr port_use rope_table(const op& o) {
    const dim& heads = t_.values[o.in[0]].shape[1];
    const rope_use wanted{o.with.seq / s_.dims.cp, heads.unit, o.with.theta, o.with.scaling};
    std::size_t table = 0;
    while (table < out_.ropes.size() && !(out_.ropes[table] == wanted)) ++table;
    if (table == out_.ropes.size()) {
      const local_dim row{.name = heads.unit_name, .count = heads.unit};
      const local_dim positions{
          .name = "seq", .count = wanted.positions, .over = s_.dims.cp > 1 ? axis_set(axis::cp) : axis_set{}};
      const int shape = out_.add(local_shape{.dims = {positions, row}, .ndim = 2, .stride = row});
      out_.ropes.push_back(wanted);
      rope_.push_back(add(space::rope, element_kind::wide, shape, static_cast<int>(table), {}));
    }
    return {{rope_[table], 0}, out_.values[rope_[table]].shape};
  }
  constexpr port_use scratch(const op& o) {
    const int made =
        out_.add(value{.holds = element_kind::bytes, .name = {name_source::scratch, -1, o.kind}});
    return {.at = {made, 0}};
  }
  /// Merges two values. A name from the model is kept. Of two such names, forward keeps that of `from`, the
  /// later value, and backward that of `into`.
  constexpr void merge(int from, int into) {
    const name_source &a = out_.values[from].name, &b = out_.values[into].name;
    if (a.of_model && (!b.of_model || !in_backward_)) out_.values[into].name = a;
    for (int& c : class_)
      if (c == from) c = into;
  }
  /// Appends a node that copies the merged values `from`. The copy has the type and shape of value `v`.
  constexpr int copy(nodes& list, int from, int v) {
    const int shape = out_.values[v].shape,
              made = add(space::temp, out_.values[v].holds, shape, 0, {name_source::copy, v});
    node n{.row = &ops::copy, .wide = out_.values[v].holds == element_kind::wide};
    n.ports.push_back({{made, 0}, shape});
    n.ports.push_back({{from, 0}, shape});
    list.push_back(std::move(n));
    return made;
  }

  // ---- nodes
  constexpr void select(const op& o, nodes& list) {
    if (o.kind->converts != conversion::none) return convert(o, list);
    const bool of_chunks = takes_chunks(t_, o, s_.dims);
    const op_row& row = of_chunks ? *o.kind->in_chunks : *o.kind;
    const kernel_row kernel = kernel_of(row, s_.to);
    if (kernel.name.empty()) throw not_lowered{&row, false, o.over};
    node n{.row = &row,
           .rows = rows_of_op(t_, o, s_.dims),
           .seq = o.with.seq,
           .number = of_chunks ? s_.dims.cp : o.number(),
           .attention = o.with.attention};
    int read = 0, written = 0, scratch_at = -1;
    n.ports.reserve(static_cast<std::size_t>(row.count_ports()));
    for (const port& p : row.used_ports()) {
      if (p.as == use::rotary) {
        n.ports.push_back(rope_table(o));
        n.seq /= s_.dims.cp;  // the positions of the rank's own tokens only
      } else if (p.as == use::scratch) {
        n.ports.push_back(scratch(o));
        scratch_at = n.ports.back().at.value;
      } else n.ports.push_back(use_of(p.is_written() ? o.out[written++] : o.in[read++]));
      if (p.as == use::sum) n.accumulate = accumulation::after_first;
      if (p.adds) n.accumulate = accumulation::overwrite;
    }
    if (writes_loss(n))
      for (const node& earlier : list)
        if (writes_loss(earlier)) n.accumulate = accumulation::add;  // the layer has an earlier loss
    n.wide = (o.kind == &ops::zeros || o.kind == &ops::add) && t_.values[o.out[0]].holds == element::wide;
    if (kernel.scratch && scratch_at >= 0)
      out_.values[scratch_at].bytes = kernel.scratch(sizes_of(out_, n, ring_ranks(s_.dims)),
                                                     {s_.bytes(element_kind::real), s_.deterministic});
    list.push_back(std::move(n));
  }
  constexpr bool writes_loss(const node& n) const {
    bool writes = false;
    n.each_write([&](const port_use& u) { writes |= out_.values[u.at.value].where == space::loss; });
    return writes;
  }

  static constexpr bool exchanges_slots(const op& o) { return o.kind->converts >= conversion::to_experts; }
  /// Rows of one slab: what one ep rank sends to another, or what an etp rank received.
  constexpr int rows_of_slab(const op& o) const {
    type received = t_.values[o.kind->converts == conversion::from_experts ? o.in[0] : o.out[0]];
    if (o.kind->converts >= conversion::share_offsets) {
      received = t_.values[o.in[0]];
      received.shape[0] = o.with.first;
    }
    for (axis a : axes)
      if (received[a] == P) received[a] = V(0);  // token counts are partial sums where tokens are sharded
    return static_cast<int>(local(received, 0, s_.dims).width()) / (s_.dims.*row(o.over).degree);
  }

  /// The axis of a conversion; in a ring of groups an all-to-all runs inside a group.
  static constexpr axis over_of(const op& o) {
    return o.kind->converts == conversion::all_to_all && o.with.ring > 1 ? axis::ulysses : o.over;
  }
  /// Selects a conversion. Over one rank it only changes the placement; `replicate` always does.
  constexpr void convert(const op& o, nodes& list) {
    if (o.kind->converts == conversion::all_reduce_batch) return sum_over_batch(o, list);
    const int degree = s_.dims.*row(o.over).degree;
    if (degree > 1 && row(o.over).lowered != lowered_values::all) throw not_lowered{o.kind, true, o.over};
    if (degree == 1 || !o.kind->communicates()) return merge(find(o.out[0]), find(o.in[0]));
    if (o.kind->is_shift()) return hand_on(o, list);
    const bool reduces =
        o.kind->converts == conversion::all_reduce || o.kind->converts == conversion::all_reduce_max;
    node n{.row = o.kind, .over = over_of(o), .converts = o.in[0]};
    if (reduces) {
      int uses = 0;
      for (const op& other : t_.ops)
        for (int in : other.in) uses += in >= 0 && find(in) == find(o.in[0]);
      // The reduction is in place, or on a copy if another op reads the partial sum.
      merge(find(o.out[0]), uses == 1 ? find(o.in[0]) : copy(list, find(o.in[0]), o.in[0]));
    }
    n.ports.push_back(use_of(o.out[0]));
    if (o.kind->converts == conversion::all_to_all) {
      n.rows = rows_of(t_.values[o.in[0]], o.with.seq, s_.dims);
      n.seq = o.with.seq / (o.with.ring > 1 ? o.with.ring : 1);
      n.ports.push_back(scratch(o));
      // The received rows, before they are reordered.
      out_.values[n.ports.back().at.value].bytes = out_.values[find(o.in[0])].bytes;
    }
    if (exchanges_slots(o)) {
      n.ports.push_back(scratch(o));
      // The rows sent to peers, or received from them.
      const int blocks = o.kind->converts == conversion::from_experts ? o.in[0] : o.out[0];
      out_.values[n.ports.back().at.value].bytes = out_.values[find(blocks)].bytes;
      n.slab = rows_of_slab(o);
    }
    for (const int in : o.in)
      if (in >= 0) n.ports.push_back(use_of(in));
    if (reduces) n.ports[1].at = n.ports[0].at;
    n.wide =
        t_.values[o.kind->converts == conversion::reduce_scatter ? o.out[0] : o.in[0]].holds == element::wide;
    // In a ring of groups, the reduction is over the ring first, and then inside the group.
    if (reduces && o.over == axis::cp && s_.dims.ulysses > 1 && s_.dims.ulysses < s_.dims.cp) {
      list.push_back(n);
      list.back().over = axis::ring;
      n.over = axis::ulysses;
    }
    list.push_back(std::move(n));
  }

  /// A shift of two tensors at once.
  constexpr void hand_on(const op& o, nodes& list) {
    node n{.row = o.kind, .over = o.over, .converts = o.in[0]};
    for (int made : {o.out[0], o.out[1]}) n.ports.push_back(use_of(made));
    for (int given : {o.in[0], o.in[1]}) n.ports.push_back(use_of(given));
    list.push_back(std::move(n));
  }

  /// All-reduces a copy of a sum over the ranks that shard the weights, then over their replicas.
  constexpr void sum_over_batch(const op& o, nodes& list) {
    const int shards = weight_shards(s_.dims), copies = weight_replicas(s_.dims);
    if (shards * copies == 1) return merge(find(o.out[0]), find(o.in[0]));
    merge(find(o.out[0]), copy(list, find(o.in[0]), o.in[0]));
    for (const auto& [over, degree] : {std::pair(axis::fsdp, shards), std::pair(axis::replicas, copies)}) {
      if (degree == 1) continue;
      node n{.row = &ops::all_reduce,
             .wide = t_.values[o.in[0]].holds == element::wide,
             .over = over,
             .converts = o.in[0]};
      n.ports.push_back(use_of(o.out[0]));
      n.ports.push_back(use_of(o.out[0]));
      list.push_back(std::move(n));
    }
  }

  /// Assigns the layer's inputs and outputs to the memory that the caller passes. An output is copied if it
  /// is an input as well, or if backward reads it.
  constexpr void hand_on() {
    const bool reads_step = t_.values[t_.input].is_input, gives_loss = t_.values[t_.result].ndim == 0;
    const auto put = [&](int v, space where) { out_.values[v].where = where; };
    if (!reads_step) put(find(t_.input), space::x);
    if (!gives_loss) {
      int y = find(t_.result);
      const auto is_read = [&] {
        for (const node& n : out_.backward)
          if (n.reads({y, 0})) return true;
        return false;
      };
      if (out_.values[y].where == space::x || is_read()) y = copy(out_.forward, y, t_.result);
      put(y, space::y);
      put(find(t_.result_gradient), space::dy);
    }
    if (reads_step) return;
    int dx = find(t_.gradients[t_.input]);
    if (out_.values[dx].where == space::dy) dx = copy(out_.backward, dx, t_.gradients[t_.input]);
    put(dx, space::dx);
  }
  /// A carried value follows the rows in the layer's input and output buffers.
  constexpr void hand_on_carried() {
    const auto put = [&](int v, space where, int rows) {
      out_.values[v].where = where;
      const std::size_t bytes = out_.values[find(rows)].bytes, wide = s_.bytes(element_kind::wide);
      out_.values[v].offset = (bytes + wide - 1) / wide * wide;
    };
    for (const carried_value& c : t_.carried) {
      if (c.in >= 0) put(find(c.in), space::x, t_.input);
      if (c.gradient < 0) continue;
      int y = find(c.result);
      if (out_.values[y].where == space::x) y = copy(out_.forward, y, c.result);
      put(y, space::y, t_.result);
      put(find(c.gradient), space::dy, t_.result);
    }
    if (t_.reported >= 0) {
      int kept = find(t_.reported);
      if (out_.values[kept].where != space::temp) kept = copy(out_.forward, kept, t_.reported);
      out_.values[kept].where = space::routers;
    }
    for (const carried_value& c : t_.carried) {
      if (c.in < 0) continue;
      int dx = find(t_.gradients[c.in]);
      if (out_.values[dx].where == space::dy) dx = copy(out_.backward, dx, t_.gradients[c.in]);
      put(dx, space::dx, t_.input);
    }
  }

  const Trace& t_;
  const layer_setting& s_;
  // By value of the trace: the parameter that it is, or the parameter to whose gradient it adds; -1 if none.
  std::vector<int> parameter_of_, gradient_of_;
  bool in_backward_ = false;       // the op being selected is in backward
  std::vector<int> class_, rope_;  // by value of the trace; by table
  layer_program out_;
};

}  // namespace detail

/// Errors: not_lowered.
constexpr layer_program select_nodes(const auto& t, std::vector<layer_parameter> parameters,
                                     const layer_setting& s) {
  return detail::selector(t, std::move(parameters), s).run();
}

}  // namespace rankc::lowering
