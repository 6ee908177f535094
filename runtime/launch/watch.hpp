// SPDX-License-Identifier: Apache-2.0
// Finds that a step no longer gets on, and who holds it up: by what each rank says of itself, not by clocks
// of ranks. How long one op may take is learnt from those before.
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

std::string pack(const standing&);
standing unpack_standing(const std::string& body);

class watch {
 public:
  /// `who` names a rank: "rank 3 (node1, process 1234)".
  watch(const limits& l, std::function<std::string(int)> who) : limits_(l), who_(std::move(who)) {}

  /// A rank is there, but does not say what it does, or not yet: nobody is blamed before all have.
  void expect(int rank, deadline now) { heard_[rank] = now; }
  void hear(int rank, standing, deadline now);
  void leave(int rank) {
    ranks_.erase(rank);
    heard_.erase(rank);
  }
  /// Nobody could be heard for this long.
  void excuse(deadline::duration away);

  struct verdict {
    int rank;  // the first of those
    std::string text;
  };
  /// Who holds up a step in which nobody has moved for too long; nothing while it gets on.
  std::optional<verdict> judge(deadline now) const;

  /// Where a rank was when it was last heard of; empty where it never was.
  std::string last_place(int rank) const;

 private:
  std::vector<int> roots() const;
  std::string lost_between() const;
  std::string waits_of(int rank) const;
  std::string hold_up_of(int rank) const;
  bool is_each_in_step() const;
  bool all_in_step(const std::vector<int>& roots) const;

  const limits limits_;
  const std::function<std::string(int)> who_;
  std::map<int, standing> ranks_;
  std::map<int, deadline> heard_;  // by rank
  deadline last_move_{};
  deadline::duration longest_{};  // in which no rank got on, while each was in a step
  bool a_step_is_done_ = false;
};

}  // namespace rankc::runtime
