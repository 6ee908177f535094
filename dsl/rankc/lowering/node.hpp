// SPDX-License-Identifier: Apache-2.0
// A layer as nodes on values. A node is an op of the table with an operand for each port; the passes over it
// take what they need to know of an op from its row. The same passes run in the compiler and in the
// generator.
#pragma once
#include <rankc/lowering/parameters.hpp>
#include <rankc/recipe/training.hpp>
#include <rankc/trace/op_row.hpp>

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace rankc::lowering {

enum class target : unsigned char { host, cuda };

/// Where a value lies. `x` to `dx` are handed in by the caller; `saved` lasts from forward to backward;
/// `halfway` from the first half of backward to the second; `temp` lasts within one of them; the rest are
/// places that the whole pipeline rank shares.
enum class space : unsigned char {
  x,
  y,
  dy,
  dx,
  saved,
  halfway,
  temp,
  weight,
  gradient,
  rope,
  tokens,
  targets,
  loss,
  routers,
  starts
};

/// What a value's elements are: as in types, or bytes that mean nothing before and after a node.
enum class element_kind : unsigned char { real, wide, index, e4m3, e5m2, e4m3_rows, bytes };
constexpr bool is_fp8(element_kind k) { return k >= element_kind::e4m3 && k < element_kind::bytes; }

/// What a layer or a stage does for a microbatch. Backward is whole, or in two halves: the gradient of the
/// input, which the stage before waits for, and the rest.
/// What backward repeats of forward it does first, without the gradient that it waits for.
enum class phase : unsigned char { forward, backward, backward_input, backward_weight, recompute };
inline constexpr std::string_view phase_names[]{"forward", "backward", "backward_input", "backward_weight",
                                                "recompute"};

/// The steps in which a node of forward runs.
enum class in_step : unsigned char { any, training, evaluation };

enum class accumulation : unsigned char {
  none,
  overwrite,
  add,
  after_first
};  // after_first: overwrite in the first microbatch

/// What a plan says to the passes over a layer.
struct layer_setting {
  parallel_dims dims{};   // each degree known
  precision type = bf16;  // of activations
  target to = target::host;
  bool deterministic = false;
  bool splits_backward = false;  // the schedule has halves of backward
  bool trains = true;
  recomputation recompute = {};                        // of the layer: none, where it keeps all
  bool gives_dx = true;                                // the layer: else nothing before it is trained
  linear_precision linears = linear_precision::plain;  // of the layer
  constexpr std::size_t bytes(element_kind c) const {
    if (c >= element_kind::e4m3) return 1;
    if (c == element_kind::index || (c == element_kind::wide && type == bf16)) return 4;
    return size_of(type);
  }
};

/// After what a value is named.
struct name_source {
  enum kind : unsigned char { traced, copy, packed, packed_gradient, packed_weight, scratch } from = traced;
  int of = -1;                    // traced, copy: a value of the trace; packed: a composed dim
  const op_row* row = nullptr;    // scratch: the op whose it is
  bool of_model = false;          // traced: the model names it, or that whose gradient it is
  bool again = false;             // made once more, for backward
  std::string_view rounded = "";  // to what: "e4m3"
};

/// The first and the last node of a list that touch a value; -1: none does.
struct node_range {
  int first = -1, last = -1;
  constexpr bool any() const { return first >= 0; }
};

struct value {
  space where = space::temp;
  element_kind holds = element_kind::real;
  int shape = -1;  // of the layer's
  std::size_t bytes = 0;
  int of = 0;  // weight, gradient: parameter; rope: table
  name_source name{};
  // among what is saved, or kept halfway, or in the workspace (temp); of statistics, behind the rows (x
  // to dx)
  std::size_t offset = 0;
  node_range forward{}, backward{};
};

/// A value, or columns of one: from which byte on.
struct slice {
  int value = -1;
  std::size_t offset = 0;
  constexpr bool operator==(const slice&) const = default;
};

/// What a port of a node is given.
struct port_use {
  slice at{};
  int shape = -1;  // of the layer's
  int run = -1;    // of the layer's: further parameters
};

struct node {
  const op_row* row = nullptr;
  std::vector<port_use> ports{};  // as the row has them
  accumulation accumulate = accumulation::none;
  bool wide = false;         // its kernel's type is that of wide operands
  bool for_weights = false;  // of the second half of a backward in two halves
  bool repeatable = false;   // of forward: backward may repeat it
  bool again = false;        // of backward: it repeats one of forward
  in_step only = in_step::any;
  int rows = 0, seq = 0;    // the op's attributes
  double number = 0;        // the op's; of chunks: the ranks that shard a sequence
  int slab = 0;             // rows of what ranks of ep send each other
  axis over = region_axis;  // of a conversion
  int converts = -1;        // the value of the trace that it converts
  bool joins = false;       // it waits for the concurrent shift around the ring
  // with the node so many before it: the one moves rows, the other makes products of them, a part after
  int by_rows = 0;
  // another, and what is between them runs meanwhile; 0: with none

  constexpr bool is(const op_row& r) const { return row == &r; }
  constexpr const port_use& operator[](std::string_view name) const {
    return ports[static_cast<std::size_t>(row->find(name))];
  }
  constexpr port_use& operator[](std::string_view name) {
    return ports[static_cast<std::size_t>(row->find(name))];
  }

  constexpr void each_read(auto visit) const { each(&port::is_read, visit); }
  constexpr void each_write(auto visit) const { each(&port::is_written, visit); }
  constexpr bool reads(const slice& s) const { return any(s, &port::is_read); }
  constexpr bool writes(const slice& s) const { return any(s, &port::is_written); }
  /// Whether it touches a value, whichever part of it.
  constexpr bool mentions(int value) const {
    for (const port_use *u = ports.data(), *end = u + ports.size(); u != end;
         ++u)  // clang takes its time for iterators
      if (u->at.value == value) return true;
    return false;
  }
  constexpr bool runs_in(bool training) const {
    return only == in_step::any || (only == in_step::training) == training;
  }
  /// Whether it goes around a ring beside computation.
  constexpr bool is_beside() const {
    return row->converts == conversion::shift || row->converts == conversion::shift_back;
  }
  /// Whether it sums over microbatches.
  constexpr bool sums() const {
    for (std::size_t p = 0; p < ports.size(); ++p)
      if (row->ports[p].as == use::sum) return true;
    return false;
  }

 private:
  constexpr void each(bool (port::*side)() const, auto visit) const {
    const port* p = row->ports;
    for (const port_use *u = ports.data(), *end = u + ports.size(); u != end; ++u, ++p)
      if ((p->*side)()) visit(*u);
  }
  constexpr bool any(const slice& s, bool (port::*side)() const) const {
    const port* p = row->ports;
    for (const port_use *u = ports.data(), *end = u + ports.size(); u != end; ++u, ++p)
      if (u->at.value == s.value && u->at == s && (p->*side)()) return true;
    return false;
  }
};
using nodes = std::vector<node>;

/// The node that one goes by rows with; itself: it goes with none.
constexpr std::size_t find_partner(std::span<const node> list, std::size_t of) {
  if (list[of].by_rows > 0) return of - static_cast<std::size_t>(list[of].by_rows);
  for (std::size_t later = of + 1; later < std::min(of + 3, list.size()); ++later)
    if (list[later].by_rows == static_cast<int>(later - of)) return later;
  return of;
}

/// A node goes to another place; those between make room.
constexpr void move_node(nodes& list, std::size_t from, std::size_t to) {
  for (; from > to; --from) std::swap(list[from], list[from - 1]);
  for (; from < to; ++from) std::swap(list[from], list[from + 1]);
}

/// Cosines and sines of a rank's rotary positions.
struct rope_use {
  int positions, dim;
  double theta;
  rope_scaling scaling;
  constexpr bool operator==(const rope_use&) const = default;
};

struct layer_program {
  std::vector<value> values;
  std::vector<local_shape> shapes;
  nodes forward, backward;
  std::vector<std::vector<int>> runs;  // values of parameters, of which each continues the one before
  std::vector<layer_parameter> parameters;
  std::vector<composed_dim> composed;
  std::vector<rope_use> ropes;
  bool in_halves = false;      // backward is
  std::size_t first_half = 0;  // nodes of its first half
  std::size_t repeated = 0;    // nodes at its begin that repeat forward's
  // After storage:
  std::size_t x_bytes = 0, y_bytes = 0, saved_bytes = 0, halfway_bytes = 0, forward_temp = 0,
              backward_temp = 0;
  std::size_t routers_bytes = 0;  // of what is kept of a microbatch's routers

  constexpr int add(const value& v) {
    values.push_back(v);
    return static_cast<int>(values.size()) - 1;
  }
  constexpr int add(const local_shape& s) {
    shapes.push_back(s);
    return static_cast<int>(shapes.size()) - 1;
  }
  constexpr const local_shape& shape(const port_use& u) const {
    return shapes[static_cast<std::size_t>(u.shape)];
  }
  constexpr const local_shape& shape(const value& v) const {
    return shapes[static_cast<std::size_t>(v.shape)];
  }
  /// What a conversion has of a rank's elements: all that it is given, or gets; of slots, with the room for
  /// them.
  constexpr const local_shape& part(const node& n) const {
    const conversion by = n.row->converts;
    if (by == conversion::from_experts) return shape(n["received"]);
    return shape(by == conversion::reduce_scatter || by == conversion::to_experts ? n.ports.front()
                                                                                  : n.ports.back());
  }
  /// Whether a value belongs to the layer alone: not handed in, and not handed on.
  constexpr bool is_inner(const slice& s) const { return values[s.value].where == space::temp; }
  /// Whether an operand is all of its value.
  constexpr bool is_whole(const port_use& u) const {
    return u.shape >= 0 &&
           shape(u).elements() == shape(values[static_cast<std::size_t>(u.at.value)]).elements();
  }
  /// Number of nodes that touch a value.
  constexpr int mentions(int value) const {
    int n = 0;
    for (const nodes* list : {&forward, &backward})
      for (const node& each : *list) n += each.mentions(value);
    return n;
  }

  /// Visits the begin and the end of each phase of backward.
  constexpr void each_phase_of_backward(auto visit) const {
    const std::size_t half = in_halves ? std::max(first_half, repeated) : backward.size();
    visit(std::size_t{0}, repeated);
    visit(repeated, half);
    visit(half, backward.size());
  }
  /// The nodes of a phase; a backward that is whole has no halves.
  constexpr std::span<const node> calls(phase p) const {
    if (p == phase::forward) return forward;
    const std::span<const node> all(backward);
    if (p == phase::recompute) return all.first(repeated);
    if (p == phase::backward) return all.subspan(repeated);
    if (!in_halves) return {};
    return p == phase::backward_input ? all.subspan(repeated, first_half - repeated)
                                      : all.subspan(first_half);
  }
  constexpr bool touches(phase p, const value& v) const {
    if (p == phase::forward) return v.forward.any();
    if (!v.backward.any()) return false;
    const auto [first, last] = v.backward;
    const int begin = static_cast<int>(repeated), half = static_cast<int>(first_half);
    if (p == phase::recompute) return first < begin;
    if (p != phase::backward && !in_halves) return false;
    if (p == phase::backward_weight) return last >= half;
    if (first >= begin || p == phase::backward) return p == phase::backward ? last >= begin : first < half;
    for (const node& n : calls(p))  // it is touched before this phase, too
      if (n.mentions(static_cast<int>(&v - values.data()))) return true;
    return false;
  }
  /// Whether a value goes from the first half of backward to the second.
  constexpr bool crosses_halves(const value& v) const {
    const int half = static_cast<int>(first_half);
    return in_halves && v.backward.any() && v.backward.first < half && v.backward.last >= half;
  }
  constexpr bool uses(phase p, space s) const {
    for (const value& v : values)
      if (v.where == s && touches(p, v)) return true;
    return false;
  }
};

/// The sizes of a node on one rank, as the table asks for them. `ring`: the ranks of a ring.
constexpr op_sizes sizes_of(const layer_program& l, const node& n, int ring) {
  op_sizes s(*n.row);
  for (std::size_t p = 0; p < n.ports.size(); ++p) {
    if (n.ports[p].shape < 0) continue;
    const local_shape& here = l.shape(n.ports[p]);
    for (int d = 0; d < here.ndim; ++d) s.bind(static_cast<int>(p), d, here.dims[d].count, here.dims[d].unit);
  }
  s.bind_attributes(n.rows, n.seq, ring);
  return s;
}

/// The elements that a conversion sends.
constexpr element_kind sent_elements(const node& n) {
  if (n.row->converts >= conversion::share_offsets) return element_kind::index;
  return n.wide ? element_kind::wide : element_kind::real;
}

/// The size of a conversion's buffer on one rank. Units: bytes.
constexpr std::size_t message_bytes(const layer_program& l, const node& n, const layer_setting& s) {
  const conversion by = n.row->converts;
  const bool shifts = by == conversion::shift || by == conversion::shift_back;  // all operands at once
  return static_cast<std::size_t>(shifts ? n.row->count(false) : 1) *
         static_cast<std::size_t>(l.part(n).elements()) * s.bytes(sent_elements(n));
}

/// A value where a node reads or writes it.
struct operand {
  slice at;
  bool implied = false;  // continues the one before: a kernel is not given it
  int port = 0;
};

/// What a node writes, scratch too, or what it reads: as its kernel takes them.
constexpr void each_operand(const layer_program& l, const node& n, bool written, auto visit) {
  for (std::size_t p = 0; p < n.ports.size(); ++p) {
    const port_use& u = n.ports[p];
    if (n.row->ports[p].is_read() == written) continue;
    visit(operand{u.at, false, static_cast<int>(p)});
    if (u.run >= 0)
      for (int more : l.runs[static_cast<std::size_t>(u.run)])
        visit(operand{{more, 0}, true, static_cast<int>(p)});
  }
}

/// The kernel of an op on a target.
constexpr kernel_row kernel_of(const op_row& row, target t) {
  return t == target::cuda ? row.on_cuda() : row.on_host();
}

}  // namespace rankc::lowering
