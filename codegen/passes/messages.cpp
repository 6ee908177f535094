// SPDX-License-Identifier: Apache-2.0
// When each message moves. Nothing is buffered on the way: a send lasts until its receive is issued, and holds its buffer.
// On the simulated time line every message has a time at which both sides are there; a buffer is used again only by an
// action that begins later. All that waits then waits for something earlier, so that buffers cause no deadlock.
#include "messages.hpp"

#include <fmt/format.h>

#include <rankc/schedule/timing.hpp>

#include <algorithm>
#include <map>
#include <stdexcept>

namespace rankc::codegen {

namespace {

bool is_backward(action_kind k) { return k == action_kind::B || k == action_kind::I; }

/// Where each stage runs its forwards, and where its input gradients.
struct positions {
  explicit positions(const action_table& t) {
    for (int r = 0; r < t.ranks(); ++r)
      for (int i = t.begin[r]; i < t.begin[r + 1]; ++i) {
        const action& a = t.actions[i];
        if (a.kind == action_kind::F) forward[{a.stage, a.microbatch}] = i - t.begin[r];
        if (is_backward(a.kind)) backward[{a.stage, a.microbatch}] = i - t.begin[r];
      }
  }
  std::map<std::pair<int, int>, int> forward, backward;
};

void refuse_distance(const action_table& t, int stage) {
  const int here = t.rank_of_stage[stage], there = t.rank_of_stage[stage + 1], ranks = t.ranks();
  const int next = (here + 1) % ranks, previous = (here + ranks - 1) % ranks;
  if (there == here || there == next || there == previous) return;
  throw std::runtime_error(fmt::format("RC330: stage {} is on rank {} and stage {} on rank {}, but a rank sends to its neighbours in "
                                       "the ring of {} ranks alone; put stage {} on rank {}, {} or {}",
                                       stage, here, stage + 1, there, ranks, stage + 1, previous, here, next));
}

/// Place the messages of one edge, given in its order.
void place_edge(std::vector<pipeline_message*>& edge, const action_table& t, const timing& over_time) {
  int earliest = edge.back()->used;
  for (auto m = edge.rbegin(); m != edge.rend(); ++m) {
    earliest = std::min(earliest, (*m)->used);
    (*m)->posted = std::max(0, earliest - 1);
  }
  double moved = 0;
  for (pipeline_message* m : edge) {
    const int sender = t.begin[m->sender], actions = t.begin[m->sender + 1] - sender;
    const double posted = m->posted > 0 ? over_time.end[t.begin[m->receiver] + m->posted - 1] : 0;
    moved = std::max({moved, over_time.end[sender + m->made], posted});
    m->held = m->made + 1;
    while (m->held + 1 < actions && over_time.begin[sender + m->held + 1] < moved) ++m->held;
  }
}

}  // namespace

std::vector<pipeline_message> place_messages(const action_table& t) {
  for (int s = 0; s + 1 < t.stages(); ++s) refuse_distance(t, s);
  const positions at(t);
  std::vector<pipeline_message> all;
  for (int r = 0; r < t.ranks(); ++r)
    for (bool to_next : {true, false})
      for (int i = t.begin[r]; i < t.begin[r + 1]; ++i) {
        const action& a = t.actions[i];
        const bool gradients = a.kind != action_kind::F;
        const int to = a.stage + (gradients ? -1 : 1);
        if (a.kind == action_kind::W || to < 0 || to == t.stages() || t.rank_of_stage[to] == r) continue;
        const int receiver = t.rank_of_stage[to];
        if (goes_to_next(r, receiver, t.ranks(), gradients) != to_next) continue;
        all.push_back({.gradients = gradients, .to_next = to_next, .microbatch = a.microbatch, .from_stage = a.stage, .to_stage = to,
                       .sender = r, .receiver = receiver, .made = i - t.begin[r],
                       .used = (gradients ? at.backward : at.forward).at({to, a.microbatch})});
      }
  const timing over_time = time(t);
  for (std::size_t i = 0; i < all.size();) {
    std::vector<pipeline_message*> edge;
    for (const pipeline_message first = all[i]; i < all.size() && all[i].sender == first.sender && all[i].to_next == first.to_next; ++i)
      edge.push_back(&all[i]);
    place_edge(edge, t, over_time);
  }
  return all;
}

}  // namespace rankc::codegen
