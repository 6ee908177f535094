// SPDX-License-Identifier: Apache-2.0
// The checker's three parts: that the ops meet and follow one another as the certificate's order says, that
// in this order every byte read is the byte meant, and that what is summed up is whole where it is used.
#pragma once
#include "verify_read.hpp"

#include <compare>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace rankc::codegen::verifying {

struct id {
  int rank, index;
  auto operator<=>(const id&) const = default;
};

/// Who meets whom, and what the start of an op waits for directly: ops of the same routine.
class schedule {
 public:
  std::vector<std::vector<std::vector<int>>> causes;  // (routines, instructions)

  /// The ops that happen together with an op, itself among them.
  std::span<const id> together(const id& i) const {
    const int m = meeting_[i.rank].empty() ? -1 : meeting_[i.rank][i.index];
    if (m < 0) return {&i, 1};
    return {members_.data() + first_[m], members_.data() + first_[m + 1]};
  }
  void add(const std::vector<id>& who) {
    for (const id& i : who) meeting_[i.rank][i.index] = static_cast<int>(first_.size()) - 1;
    members_.insert(members_.end(), who.begin(), who.end());
    first_.push_back(static_cast<int>(members_.size()));
  }
  explicit schedule(const document& d) {
    for (const auto& w : d.workers) meeting_.emplace_back(d.routines[w.routine].instructions.size(), -1);
  }

 private:
  std::vector<std::vector<int>> meeting_;  // of each op; -1: it does not communicate
  std::vector<int> first_{0};
  std::vector<id> members_;
};

/// Errors: runtime::failure where the certificate does not hold, from all of these.
schedule check_schedule(const document&);
/// Where the operands of ops that meet lie.
void check_operands(const document&, const schedule&);
/// Ranks that stand for others, of a step whose communicators have been found right.
void check_represented(const document&);
/// Ops that go at once, beyond what the schedule says of them.
void check_by_rows(const document&);
/// The memory of ops among which those that go at once have been found right.
void check_memory(const document&, const schedule&);

inline const routine& routine_of(const document& d, int rank) { return d.routines[d.workers[rank].routine]; }
inline const instruction& at(const document& d, id i) { return routine_of(d, i.rank).instructions[i.index]; }

/// A sentence about an op: its first holes are for the rank and the op.
template <class... T>
[[noreturn]] void refuse(const document& d, id i,
                         runtime::sentence<int, std::string, std::type_identity_t<T>...> about,
                         const T&... facts) {
  refuse(about, i.rank, at(d, i).name, facts...);
}

}  // namespace rankc::codegen::verifying
