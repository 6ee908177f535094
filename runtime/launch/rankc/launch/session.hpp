// SPDX-License-Identifier: Apache-2.0
// A process's part in a job of several processes: the launcher's variables, the common start, and the end.
#pragma once
#include <rankc/runtime/engine.hpp>
#include <rankc/launch/coordinator.hpp>
#include <rankc/launch/environment.hpp>
#include <rankc/launch/member.hpp>
#include <rankc/runtime/placement.hpp>

#include <memory>
#include <optional>

namespace rankc::runtime {

/// The place that a launcher has given to this process; empty if no launcher has started several.
/// Errors: failure (2) if the variables contradict the plan, or one is missing.
std::optional<launched> launched_place(const description&, const environment&);

class session {
 public:
  /// Join the other ranks; rank 0 also runs the coordinator. Raises the limit of open files to its hard
  /// limit.
  /// Errors: refused_start (2) if the ranks do not agree, (75) if some are missing; failure (75) if rank 0
  /// cannot be reached; failure (1) if the limit of open files is too low.
  session(const description&, const launched&, const environment&);
  ~session() { member_->close(); }
  session(const session&) = delete;

  const placement& where() const { return where_; }

  /// End a rank that has failed: print a line, unless another rank prints the same one. Returns: the exit
  /// code, which is 77 if another rank is the cause.
  int end(const failure&);

  /// End a rank without a failure, when all ranks have ended.
  /// Errors: failure (77) if another has failed.
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
