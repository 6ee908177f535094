// SPDX-License-Identifier: Apache-2.0
// Finds a step or an install that makes no progress, and the rank that delays it, by the ranks' positions and
// not by their clocks. Earlier steps show how long one op may take.
#pragma once
#include <rankc/launch/limits.hpp>
#include <rankc/launch/socket.hpp>
#include <rankc/runtime/progress.hpp>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace rankc::runtime {

/// A rank's position: `in step 12 at 1B3, op 57`, or `in the install (collectives)` for step 0.
std::string text_of(const rank_position&);

std::string pack(const rank_position&);
rank_position unpack_position(const std::string& body);

class watch {
 public:
  /// `who` names a rank: "rank 3 (node1, process 1234)".
  watch(const limits& l, std::function<std::string(int)> who) : limits_(l), who_(std::move(who)) {}

  /// A rank has joined but sent no position yet. No rank is blamed before all ranks have sent theirs.
  void expect(int rank, deadline now) { heard_[rank] = now; }
  void hear(int rank, rank_position, deadline now);
  void leave(int rank) {
    ranks_.erase(rank);
    heard_.erase(rank);
  }
  /// This process was stopped for that time, so ranks' silence does not count.
  void excuse(deadline::duration away);

  struct verdict {
    int rank;  // the first rank that holds up the others
    std::string text;
  };
  /// The ranks that hold up a step in which no rank has moved for too long; empty if there is progress.
  std::optional<verdict> judge(deadline now) const;

  /// The last known position of a rank; empty at first.
  std::string last_place(int rank) const;
  /// The same, with the communication that the rank waits for.
  std::string work_of(int rank) const;

 private:
  std::vector<int> roots() const;
  std::vector<int> circle_from(int rank) const;
  std::string lost_between() const;
  std::string waits_of(int rank) const;
  std::string hold_up_of(int rank) const;
  bool is_each_in_step() const;
  bool all_in_step(const std::vector<int>& roots) const;
  bool is_in_install(const std::vector<int>& roots) const;

  const limits limits_;
  const std::function<std::string(int)> who_;
  std::map<int, rank_position> ranks_;
  std::map<int, deadline> heard_;  // by rank
  deadline last_move_{};
  deadline::duration longest_{};  // the longest time in a step without progress of any rank
  bool a_step_is_done_ = false;
};

}  // namespace rankc::runtime
