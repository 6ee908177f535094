// SPDX-License-Identifier: Apache-2.0
// Finds the first op of a step that computes numbers that are not finite, while the step runs again. Its
// operands are finite before the op, but not after it. If an operand was not finite before, the fault belongs
// to the op, lane or rank that produced it.
#pragma once
#include "local_rank.hpp"

#include <deque>
#include <optional>
#include <span>
#include <vector>

namespace rankc::runtime::host {

/// The retracer of one thread of a rank.
class retracer {
 public:
  void before(const lane&, const operand_list&);
  void after(const lane&, const operand_list&);
  const std::optional<origin>& found() const { return found_; }

 private:
  bool is_over_ = false;
  std::optional<origin> found_;
};

/// Sets a retracer on every thread of these ranks during its lifetime. First it clears the numbers that are
/// not finite and that the previous step has left in the arenas.
class retracing {
 public:
  explicit retracing(std::span<local_rank>);
  ~retracing();
  retracing(const retracing&) = delete;
  std::vector<origin> origins() const;

 private:
  const std::span<local_rank> ranks_;
  std::deque<retracer> of_;
};

}  // namespace rankc::runtime::host
