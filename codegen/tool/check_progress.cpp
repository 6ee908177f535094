// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <tuple>

#include "check.hpp"

namespace rankc::tool {

namespace {

/// The events of a program as a graph: each event has a list of events that it waits for. There are four
/// kinds of events: a compute item or STEP, a REDUCE_GRAD, a message, and the end of a message item on one
/// rank, when the whole BATCH is done.
class events {
 public:
  events(const text_program& p, const token_index& index) : p_(p), index_(index) {
    make_computations();
    for (std::size_t r = 0; r < p.ranks.size(); ++r) link_rank(static_cast<int>(r));
  }

  /// The names of a cycle of events, each of which waits for the next; empty if all can run.
  std::vector<std::string> find_cycle() const {
    const std::vector<bool> ended = run();
    const auto stuck = std::find(ended.begin(), ended.end(), false);
    if (stuck == ended.end()) return {};
    std::vector<int> path, seen_at(ended.size(), -1);
    int at = static_cast<int>(stuck - ended.begin());
    while (seen_at[at] < 0) {
      seen_at[at] = static_cast<int>(path.size());
      path.push_back(at);
      at = *std::find_if(waits_[at].begin(), waits_[at].end(), [&](int before) { return !ended[before]; });
    }
    return describe({path.begin() + seen_at[at], path.end()});
  }

 private:
  int add(std::string name, int rank) {
    names_.push_back(std::move(name));
    ranks_.push_back(rank);
    waits_.emplace_back();
    return static_cast<int>(waits_.size()) - 1;
  }

  void make_computations() {
    computation_.resize(p_.ranks.size());
    for (std::size_t r = 0; r < p_.ranks.size(); ++r)
      for (std::size_t i = 0; i < p_.ranks[r].size(); ++i) {
        const item& it = p_.ranks[r][i];
        std::string name = spell(it.tokens[0]);
        if (it.tokens.size() > 1) name = "OVERLAP(" + name + "," + spell(it.tokens[1]) + ")";
        computation_[r].push_back(
            it.kind != item_kind::compute && it.tokens[0].kind != token_kind::STEP
                ? -1
                : add(fmt::format("rank {}'s {} (item {})", r, name, i), static_cast<int>(r)));
      }
  }

  /// The event of a message. Both its ends share it.
  int message(token sends, int from, int to) {
    const auto [found, is_new] =
        messages_.try_emplace(std::tuple(sends.kind, sends.stage, sends.microbatch, sends.split), -1);
    if (is_new) {
      const bool forward = sends.kind == token_kind::SEND_F;
      const token receives{forward ? token_kind::RECV_F : token_kind::RECV_B,
                           sends.stage + (forward ? 1 : -1), sends.microbatch, sends.split};
      found->second =
          add(fmt::format("the message {} -> {} (rank {} item {}, rank {} item {})", spell(sends),
                          spell(receives), from, index_.find(sends)->index, to, index_.find(receives)->index),
              -1);
    }
    return found->second;
  }
  int message_of(const token& t) {
    const bool forward = t.kind == token_kind::SEND_F || t.kind == token_kind::RECV_F;
    const bool is_send = t.kind == token_kind::SEND_F || t.kind == token_kind::SEND_B;
    const int ahead = forward ? 1 : -1;
    const int from_stage = is_send ? t.stage : t.stage - ahead;
    const int to_stage = from_stage + ahead;
    return message({forward ? token_kind::SEND_F : token_kind::SEND_B, from_stage, t.microbatch, t.split},
                   p_.rank_of(from_stage, t.microbatch), p_.rank_of(to_stage, t.microbatch));
  }

  /// The event of a REDUCE_GRAD. A stage on two ranks has one.
  int reduction(int stage) {
    const auto [found, is_new] = reductions_.try_emplace(stage, -1);
    if (is_new) found->second = add(fmt::format("{}REDUCE_GRAD", stage), -1);
    return found->second;
  }

  void link_rank(int r) {
    int last_computation = -1, last_reduction = -1;
    // The last message item of each queue, by peer and direction as far as queues distinguish them.
    std::map<std::pair<int, bool>, int> queue;
    for (std::size_t i = 0; i < p_.ranks[r].size(); ++i) {
      const item& it = p_.ranks[r][i];
      if (it.tokens[0].kind == token_kind::REDUCE_GRAD) {
        const int me = reduction(it.tokens[0].stage);
        for (const int before : {last_computation, last_reduction})
          if (before >= 0) waits_[me].push_back(before);
        last_reduction = me;
      } else if (computation_[r][i] >= 0) {
        const int me = computation_[r][i];
        if (last_computation >= 0) waits_[me].push_back(last_computation);
        last_computation = me;
        for (const token& t : it.tokens) link_inputs(me, t, r);
      } else if (it.kind == item_kind::message) {
        const int over = add({}, r);
        std::vector<std::pair<int, bool>> keys;
        for (const token& t : it.tokens) {
          const int me = message_of(t);
          keys.push_back(key_of(t));
          if (last_computation >= 0) waits_[me].push_back(last_computation);
          if (const auto before = queue.find(keys.back()); before != queue.end())
            waits_[me].push_back(before->second);
          waits_[over].push_back(me);
        }
        for (const auto& key : keys) queue[key] = over;
      }
    }
  }

  void link_inputs(int me, const token& t, int rank) {
    if (t.kind == token_kind::STEP)
      for (int s = 0; s < p_.stages; ++s) waits_[me].push_back(reduction(s));
    for (const token& needs : producers(p_, index_, t)) {
      const place made = *index_.find(needs);
      if (made.rank == rank) continue;  // earlier in program order
      if (p_.has_messages) {
        const bool forward = needs.kind == token_kind::F;
        waits_[me].push_back(message_of(
            {forward ? token_kind::SEND_F : token_kind::SEND_B, needs.stage, needs.microbatch, needs.split}));
      } else {
        waits_[me].push_back(computation_[made.rank][made.index]);
      }
    }
  }

  std::pair<int, bool> key_of(const token& t) const {
    if (p_.by == queues::rank) return {-1, false};
    const bool is_send = t.kind == token_kind::SEND_F || t.kind == token_kind::SEND_B;
    const bool up = t.kind == token_kind::SEND_F || t.kind == token_kind::RECV_B;
    const int peer = p_.rank_of(t.stage + (up ? 1 : -1), t.microbatch);
    return {peer, p_.by == queues::edge && is_send};
  }

  /// Runs all events that can run. Returns: whether each event has ended.
  std::vector<bool> run() const {
    std::vector<std::vector<int>> next(waits_.size());
    std::vector<std::size_t> left(waits_.size());
    std::vector<int> ready;
    for (std::size_t e = 0; e < waits_.size(); ++e) {
      left[e] = waits_[e].size();
      if (left[e] == 0) ready.push_back(static_cast<int>(e));
      for (int before : waits_[e]) next[before].push_back(static_cast<int>(e));
    }
    std::vector<bool> ended(waits_.size());
    while (!ready.empty()) {
      const int e = ready.back();
      ready.pop_back();
      ended[e] = true;
      for (int after : next[e])
        if (--left[after] == 0) ready.push_back(after);
    }
    return ended;
  }

  /// The names of a cycle. Of consecutive computations on one rank it has the first, which is needed, and the
  /// last, which is stuck.
  std::vector<std::string> describe(std::vector<int> cycle) const {
    std::erase_if(cycle, [&](int e) { return names_[e].empty(); });
    std::vector<std::string> out;
    const std::size_t n = cycle.size();
    for (std::size_t i = 0; i < n; ++i) {
      const int rank = ranks_[cycle[i]];
      if (rank >= 0 && ranks_[cycle[(i + n - 1) % n]] == rank && ranks_[cycle[(i + 1) % n]] == rank) continue;
      out.push_back(names_[cycle[i]]);
    }
    return out;
  }

  const text_program& p_;
  const token_index& index_;
  std::vector<std::string> names_;  // empty: the end of a message item
  std::vector<int> ranks_;          // -1: a message
  std::vector<std::vector<int>> waits_;
  std::vector<std::vector<int>> computation_;  // event of each item; -1: none
  std::map<std::tuple<token_kind, int, int, int>, int> messages_;
  std::map<int, int> reductions_;  // event of each stage
};

std::string_view rule_of(queues by) {
  if (by == queues::edge) return "messages queue for each peer and direction";
  return by == queues::pair ? "messages queue for each peer" : "all messages of a rank queue";
}

}  // namespace

void check_progress(report& out, const text_program& p, const token_index& index) {
  const auto cycle = events(p, index).find_cycle();
  if (cycle.empty()) return;
  sentence& s = refuse(out, 304) << "the program deadlocks ("
                                 << (p.has_messages ? rule_of(p.by) : "data order") << "): " << cycle[0]
                                 << " waits for ";
  for (std::size_t i = 1; i < cycle.size(); ++i) s << cycle[i] << ", which waits for ";
  s << cycle[0];
}

}  // namespace rankc::tool
