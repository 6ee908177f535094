// SPDX-License-Identifier: Apache-2.0
// A layer after lowering, with the identifiers of its values and sizes in generated text. It is made once for
// each distinct layer. All uses of the layer share the text and differ only in offsets.
#pragma once
#include <rankc/stages/plan_data.hpp>
#include <rankc/lowering/layer.hpp>
#include <rankc/runtime/program.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rankc::codegen {

using runtime::dtype;

using rankc::layer_form;
using rankc::lowering::accumulation;
using rankc::lowering::aligned;
using rankc::lowering::alignment;
using rankc::lowering::element_kind;
using rankc::lowering::group;
using rankc::lowering::group_layout;
using rankc::lowering::in_step;
using rankc::lowering::layer_parameter;
using rankc::lowering::lifetime;
using rankc::lowering::local_dim;
using rankc::lowering::local_shape;
using rankc::lowering::n_groups;
using rankc::lowering::node;
using rankc::lowering::nodes;
using rankc::lowering::operand;
using rankc::lowering::phase;
using rankc::lowering::phase_names;
using rankc::lowering::place_intervals;
using rankc::lowering::port_use;
using rankc::lowering::rope_use;
using rankc::lowering::space;
using rankc::lowering::target;
using rankc::lowering::value;

inline constexpr int n_phases = 5;

/// A size and its text: 32, "heads / tp * head_dim".
struct extent {
  std::int64_t value = 0;
  std::string text;
};

struct constant {
  std::string name;
  std::int64_t value;
};

/// The identifiers of a layer's text.
struct body_names {
  std::vector<std::string> values, parameters,
      packed;                          // packed: the width of each composed dim of packed rows
  std::vector<std::string> converted;  // the names of the trace's values in messages
  std::vector<constant> constants;     // named constants for sizes
  // The identifier of a constant, by its name and its value.
  std::map<std::pair<std::string_view, std::int64_t>, std::string> constant_of;
};

struct body : rankc::lowering::layer_program {
  std::string name;      // of the layer; unique
  std::string id;        // identifier in the generated text
  std::size_t kind = 0;  // index of the plan's kind of layer
  rankc::lowering::layer_setting setting;
  std::int64_t tokens_of_step = 0;
  body_names names;

  const value& at(const operand& o) const { return values[static_cast<std::size_t>(o.at.value)]; }
  /// The kernel of a node.
  std::string_view function(const node& n) const { return kernel_of(*n.row, setting.to).name; }
  /// The name of a node's message: "block: all_reduce of wo_out"; in backward "block: all_gather of n1
  /// again".
  std::string message(const node&) const;
  /// Bytes of a collective, per rank.
  std::size_t message_bytes(const node& n) const { return rankc::lowering::message_bytes(*this, n, setting); }
};

/// The size of the carried value behind the rows of a layer's input (x) or result (y).
/// Units: bytes.
inline std::size_t bytes_carried(const body& b, space where) {
  for (const value& v : b.values)
    if (v.where == where && v.offset > 0) return v.bytes;
  return 0;
}

/// The operands that a node writes, scratch included, and those that it reads, in the order of its kernel's
/// arguments.
std::vector<operand> writes_of(const body&, const node&);
std::vector<operand> reads_of(const body&, const node&);

/// The text of sizes: "heads / tp", "heads / tp * head_dim".
std::string count_text(const body&, const local_dim&);
std::string width_text(const body&, const local_dim&);
/// A size of a node, by the symbol that its row uses.
extent size_of(const body&, const node&, std::string_view symbol);

struct watcher;

/// Lowers one layer: kernels, halves of backward if the schedule has them, no backward if it has none,
/// fusions, storage, offsets and names. The watcher, if there is one, sees each pass.
/// Errors: std::logic_error if an op has no kernel, or a conversion is not lowered.
body lower_layer(const plan_data&, const layer_form&, const std::string& name, dtype, target,
                 watcher* = nullptr);

}  // namespace rankc::codegen
