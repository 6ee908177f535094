// SPDX-License-Identifier: Apache-2.0
// Finds the op with which the numbers of a step began not to be finite, while the step is run again: one
// whose operands are finite before it and not after it. What comes in from elsewhere, of another op, lane or
// rank, is that one's.
#pragma once
#include "local_rank.hpp"

#include <deque>
#include <optional>
#include <span>
#include <vector>

namespace rankc::runtime::host {

/// Of one thread of a rank.
class retracer {
 public:
  void before(const lane&, const operand_list&);
  void after(const lane&, const operand_list&);
  const std::optional<origin>& found() const { return found_; }

 private:
  bool is_over_ = false;
  std::optional<origin> found_;
};

/// A retracer in every thread of these ranks, as long as this lives. Numbers that are not finite and that the
/// step before has left in the arenas are cleared first.
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
