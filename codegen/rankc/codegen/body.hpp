// SPDX-License-Identifier: Apache-2.0
// A layer after lowering, with the names that text gives its values and sizes. Made once per distinct layer;
// every use of the layer shares the text and differs only in offsets.
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

/// A size as it is computed and as it is printed: 32, "heads / tp * head_dim".
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
      packed;                          // packed: of each composed dim that is rows of parameters
  std::vector<std::string> converted;  // what messages call the values of the trace
  std::vector<constant> constants;     // of the sizes
  std::map<std::pair<std::string_view, std::int64_t>, std::string>
      constant_of;  // one for each name and value
};

struct body : rankc::lowering::layer_program {
  std::string name;      // of the layer, and of no other
  std::string id;        // in the generated text
  std::size_t kind = 0;  // of the plan's
  rankc::lowering::layer_setting setting;
  std::int64_t tokens_of_step = 0;
  body_names names;

  const value& at(const operand& o) const { return values[static_cast<std::size_t>(o.at.value)]; }
  /// The kernel that a node is.
  std::string_view function(const node& n) const { return kernel_of(*n.row, setting.to).name; }
  /// "block: all_reduce of wo_out"; "block: all_gather of n1 again", for backward.
  std::string message(const node&) const;
  /// Bytes that a rank gives a collective, or gets of it.
  std::size_t message_bytes(const node& n) const { return rankc::lowering::message_bytes(*this, n, setting); }
};

/// The size of the carried value behind the rows of a layer's input (x) or result (y).
/// Units: bytes.
inline std::size_t bytes_carried(const body& b, space where) {
  for (const value& v : b.values)
    if (v.where == where && v.offset > 0) return v.bytes;
  return 0;
}

/// What a node writes, scratch too, or what it reads: as its kernel takes them.
std::vector<operand> writes_of(const body&, const node&);
std::vector<operand> reads_of(const body&, const node&);

/// The text of sizes: "heads / tp", "heads / tp * head_dim".
std::string count_text(const body&, const local_dim&);
std::string width_text(const body&, const local_dim&);
/// A size of a node, as its row calls it.
extent size_of(const body&, const node&, std::string_view symbol);

struct watcher;

/// Lower one layer: kernels, halves of backward where the schedule has them, no backward where it has none,
/// fusions, storage, offsets and names. The watcher, if there is one, sees each pass.
/// Errors: std::logic_error where an op has no kernel, or a conversion is not lowered.
body lower_layer(const plan_data&, const layer_form&, const std::string& name, dtype, target,
                 watcher* = nullptr);

}  // namespace rankc::codegen
