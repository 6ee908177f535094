// SPDX-License-Identifier: Apache-2.0
// Finds the ops of other ranks that have surely started when an op ends. A receive ends after its send has
// started. A collective needs data of every member, so it ends after all have started. A shift needs data of
// one member only. A row-pipelined pair runs from the start of its first op to the end of its last. Only this
// end shows that the other members have started theirs.
#include "passes.hpp"

#include <algorithm>

namespace rankc::codegen::proof {

namespace {

class start_finder {
 public:
  start_finder(const op_table& table, const joint_events& events) : table_(table), events_(events) {
    found_.of.assign(static_cast<std::size_t>(table.size()), -1);
  }

  known_starts find() {
    for (int event = 0; event < events_.size(); ++event) {
      const auto members = events_.members[event];
      const op& o = *table_.ops[members[0]];
      if (o.kind == op_kind::send || o.kind == op_kind::receive) add_message(members);
      if (o.kind != op_kind::collective) continue;
      if (o.by_rows > 0) add_pairs(members);
      else if (is_shift(o.does)) add_shift(members);
      else add(members, members);
    }
    return std::move(found_);
  }

 private:
  /// Records that `ops` end after `started` have started.
  template <class Ops, class Started>
  void add(const Ops& ops, const Started& started) {
    for (int op : ops) found_.of[op] = static_cast<int>(found_.sets.first.size()) - 1;
    found_.sets.values.insert(found_.sets.values.end(), started.begin(), started.end());
    found_.sets.close();
  }

  /// A buffered send may end before its receive starts.
  void add_message(std::span<const int> members) {
    for (int op : members)
      if (table_.ops[op]->kind == op_kind::receive) add(std::vector{op}, members);
  }

  void add_pairs(std::span<const int> members) {
    std::vector<int> first, last;
    for (int op : members) {
      const int by = table_.ops[op]->by_rows;
      const bool gathers = table_.ops[op]->does == collective_kind::all_gather;
      first.push_back(gathers ? op : op - by);
      last.push_back(gathers ? op + by : op);
    }
    add(last, first);
  }

  /// If the program leaves members out, the sender may be one of them, and nothing is known.
  void add_shift(std::span<const int> members) {
    const op& o = *table_.ops[members[0]];
    const communicator& ring = table_.program.communicators[o.communicator];
    const std::size_t count = ring.ranks.size(), back = o.does == collective_kind::shift ? count - 1 : 1;
    if (ring.members() != static_cast<int>(count)) return;
    const auto of_rank = [&](int rank) {
      return *std::find_if(members.begin(), members.end(), [&](int op) { return table_.rank[op] == rank; });
    };
    for (std::size_t place = 0; place < count; ++place)
      add(std::vector{of_rank(ring.ranks[place])}, std::vector{of_rank(ring.ranks[(place + back) % count])});
  }

  const op_table& table_;
  const joint_events& events_;
  known_starts found_;
};

}  // namespace

known_starts starts_before_ends(const op_table& table, const joint_events& events) {
  return start_finder(table, events).find();
}

}  // namespace rankc::codegen::proof
