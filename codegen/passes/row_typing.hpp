// SPDX-License-Identifier: Apache-2.0
// Asks an op_row's typing rule how it places results over one axis of ranks, if operands are sharded along a
// dim or are pending sums.
#pragma once
#include <rankc/trace/trace.hpp>

#include <optional>
#include <string_view>
#include <vector>

namespace rankc::codegen {

/// A tensor of an op: its port, and its type on one device.
struct typed_port {
  const port* of;
  type is;
  bool is_gradient = false;  // a result that is the gradient of a parameter
  /// The dim that a symbol counts; -1: no dim does.
  int find(std::string_view count) const;
  /// True if the tensor may be a pending sum.
  bool may_be_pending() const { return of->as != use::parameter && of->holds != element::index; }
};

/// How the rule places the results over the axis.
struct placed_results {
  std::vector<rankc::placement> at;
  bool has_maximum = false;  // a pending result is a maximum
};
/// Empty if the rule refuses the operands.
using answer = std::optional<placed_results>;

class row_typing {
 public:
  row_typing(const trace&, const rankc::op&);

  const std::vector<typed_port>& results() const { return results_; }
  const std::vector<typed_port>& operands() const { return operands_; }

  /// The answer if every tensor with one of the symbols is sharded along it.
  answer sharded(const std::vector<std::string_view>& counts) const;
  /// The answer if one operand is a pending sum; -1: every operand that may be one.
  answer pending(int operand) const;

 private:
  using placements =
      std::vector<std::optional<rankc::placement>>;  // of operands; no value: R and I are tried
  answer ask(const placements&, const std::vector<rankc::placement>& gradients) const;
  answer ask_exactly(const std::vector<rankc::placement>&,
                     const std::vector<rankc::placement>& gradients) const;

  const rankc::op& op_;
  std::vector<typed_port> results_, operands_;
};

}  // namespace rankc::codegen
