// SPDX-License-Identifier: Apache-2.0
// The messages of a schedule: the time at which each is sent, the point at which its receive is posted, and
// the buffers that it uses. They follow from the max-plus solution in which every directed pair of ranks has
// a separate queue.
#pragma once
#include <rankc/schedule/colour.hpp>
#include <rankc/schedule/timing.hpp>

#include <algorithm>
#include <vector>

namespace rankc {

/// The result of one action, sent to another rank. It is sent as soon as the action has ended. The receive is
/// posted before the receiver's action `posted`. `left` is the sender's last action that may begin while the
/// message is in flight. All messages from one rank to another, of forwards and backwards, are sent and
/// received in the order of the sender's actions.
/// Shapes: producer, consumer, posted and left are indices into the table's actions.
/// Units: begin and end as the costs.
struct message {
  int producer, consumer, posted, left;
  int from, to;  // ranks
  double begin, end;
  int send_slot = -1, receive_slot = -1;  // buffers on the sender and on the receiver
};

/// The messages of a schedule.
/// Shapes: messages, in each sender's order; slots (ranks), the number of buffers that a rank's messages
/// need.
struct communication {
  std::vector<message> messages;
  timing when;  // with the delays of the queues
  std::vector<int> slots;
};

namespace detail {

/// The indices of the table's actions by stage and microbatch: `forward` of F, `gradient` of B or I, `last`
/// of the last action that reads the input of the F, which is B or W (in inference the F).
/// Shapes: (stages x microbatches).
struct action_places {
  std::vector<int> forward, gradient, last;
  constexpr explicit action_places(const action_table& t)
      : forward(static_cast<std::size_t>(t.stages()) * t.microbatches, -1), gradient(forward), last(forward) {
    for (int i = 0; i < static_cast<int>(t.actions.size()); ++i) {
      const action& a = t.actions[i];
      if (!computes(a.kind)) continue;
      const int cell = a.stage * t.microbatches + a.microbatch;
      if (a.kind == action_kind::F) forward[cell] = i;
      if (a.kind == action_kind::B || a.kind == action_kind::I) gradient[cell] = i;
      if (t.inference || a.kind == action_kind::B || a.kind == action_kind::W) last[cell] = i;
    }
  }
};

/// The solution with a queue for each directed pair of ranks. No receive is posted yet.
constexpr communication send_all(const action_table& t, const costs& c, const action_places& at) {
  communication out;
  out.when.begin.assign(t.actions.size(), 0);
  out.when.end = out.when.begin;
  std::vector<int> made(t.actions.size(),
                        -1);  // the message of each action, in the order of sending
  std::vector<message> sent;
  sent.reserve(t.actions.size());
  std::vector<double> queue_free(static_cast<std::size_t>(t.ranks()) * t.ranks(), 0);
  const auto deliver = [&](const action& a, double done) {
    const bool forward = a.kind == action_kind::F;
    const int to_stage = a.stage + (forward ? 1 : -1);
    if (to_stage < 0 || to_stage >= t.stages()) return done;
    const int from = t.rank_of(a.stage, a.microbatch), to = t.rank_of(to_stage, a.microbatch);
    if (from == to) return done;
    double& free = queue_free[from * t.ranks() + to];
    const double begin = std::max(done, free);
    free = begin + c.send;
    const auto index = [&](int stage) {
      return (forward ? at.forward : at.gradient)[stage * t.microbatches + a.microbatch];
    };
    const int producer = index(a.stage);
    made[producer] = static_cast<int>(sent.size());
    sent.push_back({producer, index(to_stage), -1, -1, from, to, begin, free});
    return free;
  };
  static_cast<totals&>(out.when) = solve(t, c, out.when.begin.data(), out.when.end.data(), deliver);
  out.messages.reserve(sent.size());
  for (int k : made)
    if (k >= 0) out.messages.push_back(sent[k]);
  return out;
}

/// The first action of the item that contains action `i`: an OVERLAP begins and ends as one item.
constexpr int first_of_item(const action_table& t, int rank, int i) {
  return i > t.begin[rank] && t.actions[i - 1].overlaps_next ? i - 1 : i;
}

/// The time at which a rank continues after each action: the action's end. After UNSHARD, RESHARD and
/// REDUCE_GRAD, which run concurrently with computation, the rank continues at once.
constexpr std::vector<double> find_passed(const action_table& t, const timing& when) {
  std::vector<double> passed = when.end;
  for (int r = 0; r < t.ranks(); ++r)
    for (int i = t.begin[r]; i < t.begin[r + 1]; ++i)
      if (const action_kind kind = t.actions[i].kind; !computes(kind) && kind != action_kind::step)
        passed[i] = i > t.begin[r] ? passed[i - 1] : 0;
  return passed;
}

/// Posts every receive as late as possible without a delay: after the actions that have ended when the
/// message can begin, before its consumer, and not after the next receives of its queue. Also finds the last
/// action that may begin before each message has left.
constexpr void post_receives(communication& out, const action_table& t) {
  // Each queue is visited from its last message to its first, so begin and end times decrease.
  struct queue {
    // Action indices: the point at which the next receive is posted; the first action that ends after this
    // message begins; the last that may begin before it has left.
    int behind, late, left;
  };
  std::vector<queue> queues;
  for (int from = 0; from < t.ranks(); ++from)
    for (int to = 0; to < t.ranks(); ++to)
      queues.push_back({t.begin[to + 1], t.begin[to + 1], t.begin[from + 1] - 1});
  const std::vector<double> passed = find_passed(t, out.when);
  const double* const ends = passed.data();
  for (std::size_t k = out.messages.size(); k-- > 0;) {
    message& x = out.messages[k];
    queue& q = queues[x.from * t.ranks() + x.to];
    while (q.late > t.begin[x.to] && ends[q.late - 1] > x.begin) --q.late;
    if (q.late < q.behind) q.behind = q.late;
    if (x.consumer < q.behind) q.behind = x.consumer;
    x.posted = q.behind = first_of_item(t, x.to, q.behind);
    while (q.left > x.producer && ends[q.left - 1] >= x.end) --q.left;
    x.left = q.left;
  }
}

/// A receive buffer is in use until the backward that reads it has ended, and a send buffer until its message
/// has left.
constexpr void assign_slots(communication& out, const action_table& t, const action_places& at) {
  std::vector<std::vector<buffer_use>> uses(static_cast<std::size_t>(t.ranks()));
  for (message& x : out.messages) {
    const action& user = t.actions[x.consumer];
    const int last = at.last[user.stage * t.microbatches + user.microbatch];
    uses[x.to].push_back({x.posted, last + t.actions[last].overlaps_next, &x.receive_slot});
    uses[x.from].push_back({first_of_item(t, x.from, x.producer), x.left, &x.send_slot});
  }
  for (std::vector<buffer_use>& of_rank : uses) out.slots.push_back(colour(of_rank));
}

}  // namespace detail

/// Places the messages of a table that passes check_actions, without buffers.
constexpr communication place_messages(const action_table& t, const costs& c = {}) {
  communication out = detail::send_all(t, c, detail::action_places(t));
  detail::post_receives(out, t);
  return out;
}

/// Places the messages of a table that passes check_actions, with buffers. The result cannot deadlock,
/// whatever the costs: a message waits for its producer and for those of the receiver's actions that are
/// before its consumer, and its queue has the order of the producers. With these costs no receive delays a
/// message.
constexpr communication communicate(const action_table& t, const costs& c = {}) {
  const detail::action_places at(t);
  communication out = detail::send_all(t, c, at);
  detail::post_receives(out, t);
  detail::assign_slots(out, t, at);
  return out;
}

/// Visits the operations that a rank issues, in order: receive(message), compute(index of an action; of an
/// OVERLAP its first) and send(message). An action waits for the messages that it reads.
constexpr void each_step(const action_table& t, const communication& c, int rank, auto receive, auto compute,
                         auto send) {
  std::vector<const message*> sent, received;
  for (const message& x : c.messages) {
    if (x.from == rank) sent.push_back(&x);
    if (x.to == rank) received.push_back(&x);
  }
  std::sort(received.begin(), received.end(), [](const message* a, const message* b) {
    if (a->posted != b->posted) return a->posted < b->posted;
    return a->begin != b->begin ? a->begin < b->begin : a->producer < b->producer;
  });
  auto next_sent = sent.begin();
  auto next_received = received.begin();
  for (int i = t.begin[rank]; i < t.begin[rank + 1];) {
    for (; next_received != received.end() && (*next_received)->posted == i; ++next_received)
      receive(**next_received);
    compute(i);
    i += t.actions[i].overlaps_next ? 2 : 1;
    for (; next_sent != sent.end() && (*next_sent)->producer < i; ++next_sent) send(**next_sent);
  }
}

}  // namespace rankc
