// SPDX-License-Identifier: Apache-2.0
// What all ranks have at the end of a step, held to the model's own run.
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

  /// Compare what a rank's end says that it holds, which is all that its begin had to last, where it was.
  /// Says what differs.
  std::string add(const rank_state&);
  /// Every weight is somewhere, and the loss; of a training step every moment and the norm too. Says what is
  /// not.
  std::string find_missing() const;

 private:
  void note(const rankc::codegen::holding&);

  const model_run& m_;
  bool trains_;
  bool has_loss_ = false, has_norm_ = false;
  std::map<std::pair<rankc::codegen::holding_kind, std::string>, std::vector<bool>>
      seen_;  // elements of a tensor
};

}  // namespace field
