// SPDX-License-Identifier: Apache-2.0
// A layer as a list of nodes. A node is an op with an operand for each port. The passes take all properties
// of an op from its row. The same passes run in the compiler and in the generator.
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

/// The memory that stores a value. The caller passes x, y, dy and dx to the layer. `saved` lasts from forward
/// to backward, `halfway` from the first half of backward to the second. `temp` lasts within one phase. All
/// layers of a pipeline rank share the others.
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
  input,
  loss,
  routers
};

/// The element type of a value, as in its type. `bytes` is scratch, with undefined contents before and after
/// a node.
enum class element_kind : unsigned char { real, wide, index, e4m3, e5m2, e4m3_rows, bytes };
constexpr bool is_fp8(element_kind k) { return k >= element_kind::e4m3 && k < element_kind::bytes; }

/// The phases of a microbatch in a layer or stage. Backward is one phase, or is split: the input's gradient,
/// for which the previous stage waits, and the rest. Recomputation comes first and does not need dy.
enum class phase : unsigned char { forward, backward, backward_input, backward_weight, recompute };
inline constexpr std::string_view phase_names[]{"forward", "backward", "backward_input", "backward_weight",
                                                "recompute"};

/// The steps in which a forward node runs.
enum class in_step : unsigned char { any, training, evaluation };

// `after_first` overwrites in the first microbatch, and then adds.
enum class accumulation : unsigned char { none, overwrite, add, after_first };

/// The settings for lowering one layer.
struct layer_setting {
  parallel_dims dims{};   // all degrees are known
  precision type = bf16;  // precision of activations
  target to = target::host;
  bool deterministic = false;
  bool splits_backward = false;  // the schedule splits backward in two halves
  bool trains = true;
  recomputation recompute = {};  // recomputation in this layer
  bool gives_dx = true;          // false: no layer before this one is trained, so dx is not needed
  linear_precision linears = linear_precision::plain;  // number format of this layer's linears
  constexpr std::size_t bytes(element_kind c) const {
    if (c >= element_kind::e4m3) return 1;
    if (c == element_kind::index || (c == element_kind::wide && type == bf16)) return 4;
    return size_of(type);
  }
};

/// The origin of a value's name.
struct name_source {
  enum kind : unsigned char { traced, copy, packed, packed_gradient, packed_weight, scratch } from = traced;
  int of = -1;                  // traced, copy: a value of the trace; packed: a composed dim
  const op_row* row = nullptr;  // scratch: its op
  bool of_model = false;  // traced: the model names the value, or names the value whose gradient this is
  bool again = false;     // recomputed for backward
  std::string_view rounded = "";  // the fp8 type that it is cast to, e.g. "e4m3"
};

/// The first and the last node of a list that touch a value; -1 if no node does.
struct node_range {
  int first = -1, last = -1;
  constexpr bool any() const { return first >= 0; }
};

struct value {
  space where = space::temp;
  element_kind holds = element_kind::real;
  int shape = -1;  // index of the layer's shapes
  std::size_t bytes = 0;
  int of = 0;  // weight, gradient: the parameter; rope: the table; input: the index in the plan's list
  name_source name{};
  // saved, halfway, temp: the offset in that memory. Statistics: the offset in x to dx, after the rows.
  std::size_t offset = 0;
  node_range forward{}, backward{};
};

/// A value, or some of its columns from a byte offset on.
struct slice {
  int value = -1;
  std::size_t offset = 0;
  constexpr bool operator==(const slice&) const = default;
};

/// The operand of a port.
struct port_use {
  slice at{};
  int shape = -1;  // index of the layer's shapes
  int run = -1;    // index of the layer's runs: more parameters that follow in memory
};

struct node {
  const op_row* row = nullptr;
  std::vector<port_use> ports{};  // in the order of the row's ports
  accumulation accumulate = accumulation::none;
  bool wide = false;         // the kernel is instantiated for wide operands
  bool for_weights = false;  // runs in the second half of a split backward
  bool repeatable = false;   // forward: recomputation may repeat it
  bool again = false;        // backward: it repeats a forward node
  in_step only = in_step::any;
  int rows = 0, seq = 0;  // the op's attributes
  double number = 0;      // the op's number; for chunks the degree of cp
  attention_setting attention{};
  int slab = 0;         // rows of a slab that ep ranks exchange
  axis over = no_axis;  // the axis that it converts over
  int converts = -1;    // the value of the trace that is converted
  bool joins = false;   // waits for all ring messages in flight
  // Distance to an earlier node with which this one is overlapped by rows; 0: none. One of the two is an
  // all-gather or reduce-scatter, the other the GEMM on its rows. They alternate part by part, and the node
  // between them runs meanwhile.
  int by_rows = 0;

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
  /// True if it touches any part of a value.
  constexpr bool mentions(int value) const {
    // Pointers, because clang evaluates iterators slowly.
    for (const port_use *u = ports.data(), *end = u + ports.size(); u != end; ++u)
      if (u->at.value == value) return true;
    return false;
  }
  constexpr bool runs_in(bool training) const {
    return only == in_step::any || (only == in_step::training) == training;
  }
  /// True if it is a ring message, which is overlapped with computation.
  constexpr bool is_beside() const { return row->is_shift(); }
  /// True if it adds to a sum over microbatches.
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

/// The node with which one is overlapped by rows; `of` itself if there is none.
constexpr std::size_t find_partner(std::span<const node> list, std::size_t of) {
  if (list[of].by_rows > 0) return of - static_cast<std::size_t>(list[of].by_rows);
  for (std::size_t later = of + 1; later < std::min(of + 3, list.size()); ++later)
    if (list[later].by_rows == static_cast<int>(later - of)) return later;
  return of;
}

/// Moves a node to another index and shifts the nodes between.
constexpr void move_node(nodes& list, std::size_t from, std::size_t to) {
  for (; from > to; --from) std::swap(list[from], list[from - 1]);
  for (; from < to; ++from) std::swap(list[from], list[from + 1]);
}

/// Cosines and sines for the positions of a rank's tokens.
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
  std::vector<std::vector<int>> runs;  // parameters that follow each other in memory
  std::vector<layer_parameter> parameters;
  std::vector<composed_dim> composed;
  std::vector<rope_use> ropes;
  bool in_halves = false;      // backward is split in halves
  std::size_t first_half = 0;  // number of nodes in the first half of backward
  std::size_t repeated = 0;    // number of recomputed nodes at the start of backward
  // Set by place_values:
  std::size_t x_bytes = 0, y_bytes = 0, saved_bytes = 0, halfway_bytes = 0, forward_temp = 0,
              backward_temp = 0;
  std::size_t routers_bytes = 0;  // router statistics stored for a microbatch

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
  /// The rank's own part of a conversion: the shard in an all-gather or reduce-scatter, or the receive buffer
  /// of an exchange with experts, including unused room.
  constexpr const local_shape& part(const node& n) const {
    const conversion by = n.row->converts;
    if (by == conversion::from_experts) return shape(n["received"]);
    return shape(by == conversion::reduce_scatter || by == conversion::to_experts ? n.ports.front()
                                                                                  : n.ports.back());
  }
  /// True if the value is private to the layer: neither passed in nor out.
  constexpr bool is_inner(const slice& s) const { return values[s.value].where == space::temp; }
  /// True if an operand is a whole value, not columns of one.
  constexpr bool is_whole(const port_use& u) const {
    return u.shape >= 0 &&
           shape(u).elements() == shape(values[static_cast<std::size_t>(u.at.value)]).elements();
  }
  constexpr int mentions(int value) const {
    int n = 0;
    for (const nodes* list : {&forward, &backward})
      for (const node& each : *list) n += each.mentions(value);
    return n;
  }

  /// Visits the index range of each phase of backward.
  constexpr void each_phase_of_backward(auto visit) const {
    const std::size_t half = in_halves ? std::max(first_half, repeated) : backward.size();
    visit(std::size_t{0}, repeated);
    visit(repeated, half);
    visit(half, backward.size());
  }
  /// The nodes of a phase. A backward that is not split has no halves.
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
    for (const node& n : calls(p))  // it is touched before this phase as well
      if (n.mentions(static_cast<int>(&v - values.data()))) return true;
    return false;
  }
  /// True if the first half of backward makes a value that the second half uses.
  constexpr bool crosses_halves(const value& v) const {
    const int half = static_cast<int>(first_half);
    return in_halves && v.backward.any() && v.backward.first < half && v.backward.last >= half;
  }
  constexpr bool uses(phase p, space s) const {
    for (const value& v : values)
      if (v.where == s && touches(p, v)) return true;
    return false;
  }
  /// True if the phase reads the input of this index in the plan's list.
  constexpr bool reads_input(phase p, int input) const {
    for (const value& v : values)
      if (v.where == space::input && v.of == input && touches(p, v)) return true;
    return false;
  }
};

/// The sizes of a node on one rank, by the symbols of its row. `ring`: the number of ranks in a ring.
constexpr op_sizes sizes_of(const layer_program& l, const node& n, int ring) {
  op_sizes s(*n.row);
  for (std::size_t p = 0; p < n.ports.size(); ++p) {
    if (n.ports[p].shape < 0) continue;
    const local_shape& here = l.shape(n.ports[p]);
    for (int d = 0; d < here.ndim; ++d) s.bind(static_cast<int>(p), d, here.dims[d].count, here.dims[d].unit);
  }
  s.bind_attributes(n.rows, n.seq, ring, n.attention);
  return s;
}

/// The element type that a conversion sends.
constexpr element_kind sent_elements(const node& n) {
  if (n.row->converts >= conversion::share_offsets) return element_kind::index;
  return n.wide ? element_kind::wide : element_kind::real;
}

/// The buffer size of a conversion on one rank.
/// Units: bytes.
constexpr std::size_t message_bytes(const layer_program& l, const node& n, const layer_setting& s) {
  long long elements = l.part(n).elements();
  if (n.is_beside()) elements = l.shape(n["x"]).elements() + l.shape(n["y"]).elements();
  return static_cast<std::size_t>(elements) * s.bytes(sent_elements(n));
}

/// A slice that a node reads or writes.
struct operand {
  slice at;
  bool implied = false;  // it follows the previous operand in memory, so the kernel gets no pointer to it
  int port = 0;
};

/// Visits the operands that a node writes, including scratch, or reads, in the order of the kernel's
/// arguments.
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

/// The kernel of an op on a target; its name is empty if there is none.
constexpr kernel_row kernel_of(const op_row& row, target t) {
  return t == target::cuda ? row.on_cuda() : row.on_host();
}

}  // namespace rankc::lowering
