// SPDX-License-Identifier: Apache-2.0
// Compares the state of all ranks at the end of a step with the model's own run.
#pragma once
#include "compute.hpp"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace field {

class final_state {
 public:
  final_state(const model_run& m, bool trains) : m_(m), trains_(trains) {}

  /// Compare memory with the holdings of a rank's end, which must include all lasting holdings of its begin
  /// at their addresses.
  /// Returns: the difference; empty if none.
  std::string add(const rank_state&);
  /// Check that every weight and the loss are held on some rank, and after training every moment and the
  /// norm.
  /// Returns: what is missing; empty if nothing.
  std::string find_missing() const;

 private:
  void note(const rankc::codegen::holding&);

  const model_run& m_;
  bool trains_;
  bool has_loss_ = false, has_norm_ = false;
  std::map<std::pair<rankc::codegen::holding_kind, std::string>, std::vector<bool>>
      seen_;  // elements of a tensor that were compared
};

}  // namespace field
