// SPDX-License-Identifier: Apache-2.0
// Happens-before as vector clocks. Only the streams of one rank are components at a time: bytes are never
// shared between ranks, so two ops of different ranks need no comparing.
#include "passes.hpp"

#include <algorithm>

namespace rankc::codegen::proof {

clocks::clocks(const op_table& table, const joint_events& events, const lists& predecessors,
               const std::vector<int>& sequence)
    : table_(table),
      events_(events),
      predecessors_(predecessors),
      sequence_(sequence),
      streams_(table.program.streams),
      end_(static_cast<std::size_t>(table.size()) * streams_) {}

void clocks::raise(int* clock, const int* other) const {
  for (int s = 0; s < streams_; ++s) clock[s] = std::max(clock[s], other[s]);
}

void clocks::begin(int rank) {
  first_ = table_.first_of_rank[rank];
  start_.assign(static_cast<std::size_t>(table_.first_of_rank[rank + 1] - first_) * streams_, 0);
}

void clocks::turn_to_alone(int rank) {
  begin(rank);
  for (int op = first_; op < table_.first_of_rank[rank + 1]; ++op) {
    for (int p : predecessors_[op]) raise(start_of(op), end_of(p));
    std::copy_n(start_of(op), streams_, end_of(op));
    end_of(op)[table_.ops[op]->stream] = table_.place[op];
  }
}

void clocks::turn_to(int rank) {
  begin(rank);
  std::vector<int> all(streams_);
  for (int event : sequence_) {
    const auto members = events_.members[event];
    arrival_.assign(members.size() * streams_, 0);
    std::fill(all.begin(), all.end(), 0);
    for (std::size_t m = 0; m < members.size(); ++m) {
      int* start = arrival_.data() + m * streams_;
      for (int p : predecessors_[members[m]]) raise(start, end_of(p));
      raise(all.data(), start);
    }
    for (std::size_t m = 0; m < members.size(); ++m) {
      const int op = members[m];
      const int* start = arrival_.data() + m * streams_;
      // A buffered send ends without its receive; every other member ends after all have started.
      const int* end = table_.ops[op]->kind == op_kind::send ? start : all.data();
      std::copy_n(end, streams_, end_of(op));
      if (table_.rank[op] != rank) continue;
      std::copy_n(start, streams_, start_of(op));
      end_of(op)[table_.ops[op]->stream] = table_.place[op];
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
