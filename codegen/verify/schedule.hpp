// SPDX-License-Identifier: Apache-2.0
// The parts of the check of a step. Its ops communicate and follow one another in the certificate's order,
// and in this order every read finds the value that it should.
#pragma once
#include "../certificate/document.hpp"

#include <compare>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace rankc::codegen::verifying {

using schema::communicates;
using schema::is_message;
using schema::listed_op;
using schema::listed_program;
using schema::listed_rank;
using schema::refuse;
using schema::step;

struct id {
  int rank, index;
  auto operator<=>(const id&) const = default;
};

/// The ops that communicate with each other, and for each op the ops of its program for which its start waits
/// directly.
class schedule {
 public:
  std::vector<std::vector<std::vector<int>>> causes;  // (programs, ops)

  /// The ops that communicate with an op, including the op itself.
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
  explicit schedule(const step& d) {
    for (const auto& w : d.ranks) meeting_.emplace_back(d.programs[w.program].ops.size(), -1);
  }

 private:
  std::vector<std::vector<int>> meeting_;  // by rank and op; -1: it does not communicate
  std::vector<int> first_{0};
  std::vector<id> members_;
};

/// Checks all steps of a certificate.
/// Errors: runtime::failure where it does not hold, from all functions below.
void check(const schema::file&);
schedule check_schedule(const step&);
/// Checks the addresses of the operands of ops that communicate with each other.
void check_operands(const step&, const schedule&);
/// Checks that listed ranks represent the others. The communicators of the step must have passed their
/// checks.
void check_represented(const step&);
/// Checks row-pipelined pairs, beyond the checks of the schedule.
void check_by_rows(const step&);
/// Checks the contents of memory. Row-pipelined pairs must have passed their checks.
void check_memory(const step&, const schedule&);

inline const listed_program& program_of(const step& d, int rank) { return d.programs[d.ranks[rank].program]; }
inline const listed_op& at(const step& d, id i) { return program_of(d, i.rank).ops[i.index]; }

/// Refuses a step, with a sentence about an op. The first two holes of the sentence are for the rank and the
/// op.
template <class... T>
[[noreturn]] void refuse(const step& d, id i,
                         runtime::sentence<int, std::string, std::type_identity_t<T>...> about,
                         const T&... facts) {
  refuse(about, i.rank, at(d, i).name, facts...);
}

}  // namespace rankc::codegen::verifying
