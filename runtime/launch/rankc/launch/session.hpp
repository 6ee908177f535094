// SPDX-License-Identifier: Apache-2.0
// A process's part in a job of several: from the launcher's variables, through the meeting of all ranks, to
// their end.
#pragma once
#include <rankc/runtime/engine.hpp>
#include <rankc/launch/coordinator.hpp>
#include <rankc/launch/environment.hpp>
#include <rankc/launch/member.hpp>
#include <rankc/runtime/placement.hpp>

#include <memory>
#include <optional>

namespace rankc::runtime {

/// The place that a launcher has given to this process; nothing where none has started several.
/// Errors: failure (2) where the variables contradict the plan, or one is missing.
std::optional<launched> launched_place(const description&, const environment&);

class session {
 public:
  /// Meet the other ranks. Rank 0 has the coordinator.
  /// Errors: failure (2) where they do not agree, (75) where they do not meet.
  session(const description&, const launched&, const environment&);
  ~session() { member_->close(); }
  session(const session&) = delete;

  const placement& where() const { return where_; }

  /// The end of a rank that has failed: a line, unless another has said the same, and the exit code: the
  /// failure's own, or 77 where another rank is the cause.
  int end(const failure&);

  /// The end of one that has not; returns when all have ended.
  /// Errors: failure (77) where another has failed.
  void leave() { member_->leave(); }

 private:
  const description& about_;
  const environment get_;
  const int rank_;
  std::unique_ptr<coordinator> coordinator_;
  std::shared_ptr<member> member_;
  placement where_;
};

}  // namespace rankc::runtime
