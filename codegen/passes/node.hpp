// SPDX-License-Identifier: Apache-2.0
// A layer as nodes on values, before storage is decided. A node is an op of the table with an operand for each port; the
// passes over it take what they need to know of an op from its row.
#pragma once
#include <rankc/codegen/body.hpp>
#include <rankc/codegen/names.hpp>
#include <rankc/typed/trace.hpp>

#include <algorithm>

namespace rankc::codegen {

/// A dim on one rank: whole units of so many elements; where the rank's part of it begins.
struct local_dim {
  extent count, unit{1, "1"}, first{0, "0"};
};
inline extent times(const extent& a, const extent& b) { return {a.value * b.value, a.text + " * " + b.text}; }
/// All elements of a dim.
inline extent width(const local_dim& d) { return d.unit.value == 1 ? d.count : times(d.count, d.unit); }
struct local_shape {
  std::vector<local_dim> dims;
  extent stride;  // from one row to the next, in elements
};

/// What a port of a node is given.
struct port_use {
  operand at;
  std::vector<operand> rest;  // further parameters, of which each continues the one before
  local_shape shape;
  bool operator==(const operand& o) const { return at == o; }
};

struct node {
  const op_row* row = nullptr;
  std::vector<port_use> ports{};  // as the row has them
  accumulation accumulate = accumulation::none;
  std::optional<collective> collective_{};
  bool wide = false;         // its kernel's type is that of wide operands
  bool for_weights = false;  // of the second half of a backward in two halves
  extent rows{}, seq{}, number{};  // the op's attributes
  std::size_t scratch_bytes = 0;

  bool is(const op_row& r) const { return row == &r; }
  port_use& operator[](std::string_view name) { return ports[find(name)]; }
  const port_use& operator[](std::string_view name) const { return ports[find(name)]; }
  /// The size of a symbol of the row.
  extent size(std::string_view symbol) const;

  template <class Visit>
  void each_read(Visit visit) const {
    for (std::size_t p = 0; p < ports.size(); ++p)
      if (row->ports[p].is_read()) visit(ports[p]);
  }
  template <class Visit>
  void each_write(Visit visit) const {
    for (std::size_t p = 0; p < ports.size(); ++p)
      if (row->ports[p].is_written()) visit(ports[p]);
  }
  bool reads(const operand& o) const { return any(o, &port::is_read); }
  bool writes(const operand& o) const { return any(o, &port::is_written); }
  /// Whether it touches a value, whichever part of it.
  bool mentions(const operand& o) const {
    return std::any_of(ports.begin(), ports.end(), [&](const port_use& p) { return p.at.where == o.where && p.at.index == o.index; });
  }

 private:
  std::size_t find(std::string_view name) const { return static_cast<std::size_t>(row->find(name)); }
  bool any(const operand& o, bool (port::*side)() const) const {
    for (std::size_t p = 0; p < ports.size(); ++p)
      if ((row->ports[p].*side)() && ports[p] == o) return true;
    return false;
  }
};
using nodes = std::vector<node>;

/// The nodes of a layer, and its values by their numbers.
struct layer_program {
  nodes forward, backward;
  std::vector<int> alias;  // of each value: the class of values that are one
  int x = -1, y = -1, dy = -1, dx = -1;  // classes of what is handed in and on; -1: token ids, a loss
  std::vector<std::string> names;
  std::vector<bool> named;  // by the model: values, and gradients of such
  std::vector<std::size_t> bytes;
  std::vector<std::string> shapes;
  std::vector<bool> wide;  // of statistics, which stay f32 in a bf16 program
  std::vector<constant> constants;
  std::vector<rope_use> ropes;
  name_scope scope;  // of the values and constants

  /// A new value, of no op of the trace; returns its class.
  int add_value(std::string_view wanted_name, std::string shape, std::size_t size, bool is_wide = false) {
    alias.push_back(static_cast<int>(alias.size()));
    names.push_back(scope.take(wanted_name));
    named.push_back(false);
    shapes.push_back(std::move(shape));
    bytes.push_back(size);
    wide.push_back(is_wide);
    return alias.back();
  }

  /// Number of nodes that touch a value.
  int mentions(const operand& o) const {
    const auto touches = [&](const node& n) { return n.mentions(o); };
    return static_cast<int>(std::count_if(forward.begin(), forward.end(), touches) + std::count_if(backward.begin(), backward.end(), touches));
  }
  /// Whether a value belongs to the layer alone: not handed in, and not handed on.
  bool is_inner(const operand& o) const {
    return o.where == space::temp && o.index != x && o.index != y && o.index != dy && o.index != dx;
  }
};

/// From typed ops to nodes: operands and their local shapes. Conversions over axes of one rank, and those that only rename a
/// placement, become aliases. `name`: of the layer in messages.
layer_program select_nodes(const layer_kind&, const std::string& name, const std::vector<layer_parameter>&, const plan_data&, dtype, target);

/// Put what the gradient of the input needs first in backward, and mark the rest as for the weights.
void split_backward(layer_program&);

/// An output that is only added to another value is added by its own kernel, where that can.
void add_in_place(layer_program&);

/// Pairs of nodes that the table of fusions makes one, where the target has the kernel.
void fuse_forward(layer_program&, const std::vector<layer_parameter>&, target);
void fuse_backward(layer_program&, const std::vector<layer_parameter>&, target);

/// Linears of one input whose weights are neighbours become one product, forward and backward; what they make are
/// columns of one packed buffer.
void pack_linears(layer_program&, const std::vector<layer_parameter>&, dtype);

/// The kernel of an op on a target.
inline const kernel_row& kernel_of(const op_row& row, target t) { return t == target::cuda ? row.cuda : row.host; }
/// What a kernel takes after its operands.
std::vector<extent> sizes_of(const node&, target);

}  // namespace rankc::codegen
