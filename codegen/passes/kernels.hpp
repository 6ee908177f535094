// SPDX-License-Identifier: Apache-2.0
// From typed ops to kernel calls on values: the order of operands, the sizes, what may be done in place. Conversions
// over axes of one rank, and those that only rename a placement, become aliases.
#pragma once
#include <rankc/codegen/body.hpp>
#include <rankc/codegen/names.hpp>

namespace rankc::codegen {

/// An operand of a call on values: a value of the trace, or one of the shared places.
struct value_call {
  kernel call;                     // sizes, accumulation, collective; operands still empty
  std::vector<operand> writes, reads;  // index of saved/temp operands: the value's class
  std::vector<std::pair<int, int>> in_place;  // (output, input) pairs that may share memory
  std::size_t scratch_bytes = 0;   // > 0: a scratch operand after the outputs
};

/// The calls of a layer, before storage is decided.
struct value_program {
  std::vector<value_call> forward, backward;
  std::vector<int> alias;  // of each value of the trace: the class it belongs to
  int x = -1, y = -1, dy = -1, dx = -1;  // classes of what is handed in and on; -1: token ids, a loss
  std::vector<std::string> names;
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
    shapes.push_back(std::move(shape));
    bytes.push_back(size);
    wide.push_back(is_wide);
    return alias.back();
  }
};

/// `name`: of the layer in messages.
value_program select_kernels(const layer_kind&, const std::string& name, const std::vector<layer_parameter>&, const plan_data&, dtype, target);

/// Put what the gradient of the input needs first in backward, and mark the rest as for the weights.
void split_backward(value_program&);

/// linear_dx followed by an addition of its result becomes linear_dx that adds.
void fuse_gradient_sums(value_program&);

/// linear followed by a bias on its result alone becomes linear_bias.
void fuse_linear_bias(value_program&);

/// Linears of one input whose weights are neighbours become one product, forward and backward; what they make are
/// columns of one packed buffer.
void pack_linears(value_program&, const std::vector<layer_parameter>&, dtype);

/// Every pattern that fused.hpp of the CUDA runtime has a kernel for.
void fuse_kernels(value_program&, const std::vector<layer_parameter>&);

}  // namespace rankc::codegen
