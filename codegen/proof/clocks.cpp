// SPDX-License-Identifier: Apache-2.0
// Happens-before as vector clocks. The clocks have components for the streams of one rank at a time. Ranks
// share no bytes, so ops of different ranks need no comparison.
#include "passes.hpp"

#include <algorithm>

namespace rankc::codegen::proof {

clocks::clocks(const op_table& table, const joint_events& events, const lists& predecessors,
               const std::vector<int>& sequence)
    : table_(table),
      events_(events),
      predecessors_(predecessors),
      sequence_(sequence),
      starts_(starts_before_ends(table, events)),
      streams_(table.program.streams),
      start_(static_cast<std::size_t>(table.size()) * streams_),
      end_(start_.size()) {}

void clocks::raise(int* clock, const int* other) const {
  for (int s = 0; s < streams_; ++s) clock[s] = std::max(clock[s], other[s]);
}

void clocks::start(int op) {
  std::fill_n(start_of(op), streams_, 0);
  for (int p : predecessors_[op]) raise(start_of(op), end_of(p));
}

void clocks::turn_to_alone(int rank) {
  for (int op = table_.first_of_rank[rank]; op < table_.first_of_rank[rank + 1]; ++op) {
    start(op);
    std::copy_n(start_of(op), streams_, end_of(op));
    end_of(op)[table_.ops[op]->stream] = table_.place[op];
  }
}

void clocks::turn_to(int rank) {
  std::vector<int> all(streams_);
  for (int event : sequence_) {
    const auto members = events_.members[event];
    for (int op : members) start(op);
    int known = -1;  // the set whose starts `all` combines
    for (int op : members) {
      std::copy_n(start_of(op), streams_, end_of(op));
      if (const int set = starts_.of[op]; set >= 0) {
        if (set != known) {
          std::fill(all.begin(), all.end(), 0);
          for (int started : starts_.sets[set]) raise(all.data(), start_of(started));
          known = set;
        }
        raise(end_of(op), all.data());
      }
      if (table_.rank[op] == rank) end_of(op)[table_.ops[op]->stream] = table_.place[op];
    }
  }
}

void check_communicators(const op_table& table, const clocks& clock, int rank, findings& wrong) {
  std::vector<int> last(table.program.communicators.size(), -1);
  for (int i = table.first_of_rank[rank]; i < table.first_of_rank[rank + 1] && !wrong.full(); ++i) {
    const op& o = *table.ops[i];
    if (o.kind != op_kind::send && o.kind != op_kind::receive && o.kind != op_kind::collective) continue;
    int& previous = last[o.communicator];
    if (previous >= 0 && !clock.before(previous, i))
      wrong.add(
          "RC7066: rank {}: op \"{}\" and op \"{}\" both use communicator \"{}\", and no event orders them",
          rank, table.ops[previous]->name, o.name, table.program.communicators[o.communicator].name);
    previous = i;
  }
}

}  // namespace rankc::codegen::proof
