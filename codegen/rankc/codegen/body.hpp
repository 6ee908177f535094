// SPDX-License-Identifier: Apache-2.0
// A layer after lowering: the kernels of its forward and backward, with local sizes, and the buffers they use. Made
// once per distinct layer; every use of the layer shares the text and differs only in offsets.
#pragma once
#include <rankc/plan_data.hpp>
#include <rankc/runtime/program.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rankc::codegen {

using runtime::dtype;

enum class target { host, cuda };

/// A size as it is computed and as it is printed: 32, "heads / tp * head_dim".
struct extent {
  std::int64_t value = 0;
  std::string text;
};

/// Where an operand lies. `x` to `dx` are handed in by the caller; `saved` lasts from forward to backward; `temp`
/// lasts within one of them; the rest are places that the whole pipeline rank shares.
enum class space { x, y, dy, dx, saved, temp, weight, gradient, rope, tokens, targets, loss };

struct operand {
  space where = space::temp;
  int index = 0;            // saved, temp: buffer; weight, gradient: parameter; rope: table; else 0
  std::size_t offset = 0;   // bytes into the buffer: a part of packed rows
  bool implied = false;     // touched with the operand before it, of which it is the continuation: not printed
  bool operator==(const operand&) const = default;
};

struct buffer {
  std::string name;
  std::size_t bytes = 0;
  std::string shape;       // "tokens x hidden"
  std::optional<dtype> type;  // none: scratch
  std::size_t offset = 0;  // in the slot (saved) or in the workspace (temp)
};

/// A collective inside a layer.
struct collective {
  runtime::over over;
  extent count;       // elements per rank
  std::size_t bytes;  // per rank
  bool maximum = false;
  std::string name;   // "block: all_reduce wo"
};

/// What a layer or a stage does for a microbatch. Backward is whole, or in two halves: the gradient of the input, which
/// the stage before waits for, and the rest.
enum class phase { forward, backward, backward_input, backward_weight };
inline constexpr std::string_view phase_names[]{"forward", "backward", "backward_input", "backward_weight"};

enum class accumulation { none, overwrite, add, after_first };  // after_first: overwrite in the first microbatch

/// One call in a layer's body. Operands are printed outputs first, as the kernels take them.
struct kernel {
  const op_row* row = nullptr;
  std::string function;
  std::vector<operand> writes, reads;
  std::vector<std::pair<int, int>> in_place = {};  // (output, input) pairs that the op may keep in the same bytes
  std::vector<extent> sizes;
  accumulation accumulate = accumulation::none;
  std::optional<collective> collective_;
  bool wide = false;         // of statistics or gradients of parameters, which stay f32 in a bf16 program
  bool for_weights = false;  // of the second half of a backward in two halves
  bool adds_to_output() const { return accumulate == accumulation::add; }
};

/// A parameter of a layer, sized for one rank.
struct layer_parameter {
  std::string name;
  std::string id;  // in the generated text
  int rows = 1, cols = 1, ndim = 1;  // local
  int shard_dim = -1;                // over tp
  initial start = initial::zeros;
  double std = 0;
  bool sum_over_tp = false;  // its gradient is a part of a sum there, by the typed trace
  bool sum_over_dp = false;
  bool shared = false;       // with another layer: one tensor
  std::size_t elements() const { return static_cast<std::size_t>(rows) * cols; }
};

struct constant {
  std::string name;
  std::int64_t value;
};

/// Cosines and sines of rotary positions.
struct rope_use {
  int positions, dim;
  double theta;
  bool operator==(const rope_use&) const = default;
};

struct body {
  std::string name;  // of the layer, and of no other
  std::string id;    // in the generated text
  std::vector<layer_parameter> parameters;
  std::vector<buffer> buffers;
  std::vector<kernel> forward, backward;
  std::vector<kernel> backward_input, backward_weight;  // the halves of backward, where the plan's schedule uses them
  std::vector<constant> constants;  // names used by the sizes
  std::size_t x_bytes = 0, y_bytes = 0;
  std::size_t saved_bytes = 0, forward_temp = 0, backward_temp = 0;
  std::vector<rope_use> ropes;

  const std::vector<kernel>& calls(phase p) const {
    const std::vector<kernel>* lists[]{&forward, &backward, &backward_input, &backward_weight};
    return *lists[static_cast<int>(p)];
  }
  bool uses(phase p, space s) const {
    for (const kernel& k : calls(p)) {
      for (const operand& o : k.writes) if (o.where == s) return true;
      for (const operand& o : k.reads) if (o.where == s) return true;
    }
    return false;
  }
};

/// Lower one layer: kernels, halves of backward where the schedule has them, no backward where it has none, fusions,
/// storage and offsets.
/// Errors: std::logic_error where an op has no kernel.
body lower_layer(const layer_kind&, const std::string& name, const plan_data&, dtype, target, bool splits_backward);

}  // namespace rankc::codegen
