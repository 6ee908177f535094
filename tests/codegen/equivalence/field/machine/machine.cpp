// SPDX-License-Identifier: Apache-2.0
#include "machine.hpp"

#include "collective.hpp"
#include "compute.hpp"
#include "final_state.hpp"
#include "message.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <tuple>

namespace field {

namespace {

using namespace rankc::codegen;

class machine {
 public:
  machine(const program& p, const model_run& m, unsigned seed, const execution::loader* from)
      : p_(p), m_(m), from_(from), random_(seed) {
    expect(!p.ranks.empty() && p.streams > 0, "a program of no ranks");
    for (std::size_t r = 0; r < p.ranks.size(); ++r) {
      expect(p.ranks[r].arena_bytes < (std::size_t{1} << 26), "an arena that is not tiny");
      ranks_.push_back({memory(p.ranks[r].arena_bytes), &p.ranks[r], static_cast<int>(r)});
      queues_.emplace_back(static_cast<std::size_t>(p.streams));
      done_.emplace_back(p.ranks[r].ops.size());
      queue_ops(r);
    }
    for (const communicator& c : p.communicators)
      expect(c.size == 0 || c.size == static_cast<int>(c.ranks.size()), "ranks that stand for others");
  }

  outcome run() {
    for (std::size_t r = 0; r < ranks_.size(); ++r) begin(r);
    while (step()) {
    }
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      for (const std::deque<int>& q : queues_[r])
        if (!q.empty())
          return {false, "rank " + std::to_string(r) + " is stuck at \"" + op_at(r, q.front()).name + "\"",
                  false};
    for (const auto& [channel, messages] : sent_)
      if (!messages.empty()) return {false, "a message that nobody takes", false};
    if (!difference_.empty()) return {false, difference_};
    final_state left(m_, p_.step == "train");
    for (const rank_state& rank : ranks_)
      if (const std::string d = left.add(rank); !d.empty()) return {false, d};
    const std::string missing = left.find_missing();
    return {missing.empty(), missing};
  }

 private:
  const op& op_at(std::size_t rank, int index) const {
    return p_.ranks[rank].ops[static_cast<std::size_t>(index)];
  }

  void queue_ops(std::size_t r) {
    const std::vector<op>& ops = p_.ranks[r].ops;
    expect(ops.size() >= 2 && ops.front().kind == op_kind::begin && ops.back().kind == op_kind::end,
           "a rank without begin or end");
    for (std::size_t i = 1; i + 1 < ops.size(); ++i) {
      expect(ops[i].kind != op_kind::begin && ops[i].kind != op_kind::end, "a begin or an end within a rank");
      expect(ops[i].stream >= 0 && ops[i].stream < p_.streams, "a stream that is none");
      for (int w : ops[i].waits) expect(w >= 0 && w < static_cast<int>(ops.size()), "an op waits for none");
      queues_[r][static_cast<std::size_t>(ops[i].stream)].push_back(static_cast<int>(i));
    }
  }

  void begin(std::size_t r) {
    const op& o = op_at(r, 0);
    expect(o.writes.size() == o.holds.size(), "begin says not of each write what it holds");
    for (std::size_t k = 0; k < o.writes.size(); ++k) fill(ranks_[r], o.writes[k], o.holds[k], m_);
    if (from_ != nullptr) load(ranks_[r], from_->at(r), m_);
    done_[r][0] = true;
  }

  bool is_ready(std::size_t r, int index) const {
    const std::vector<int>& waits = op_at(r, index).waits;
    return std::all_of(waits.begin(), waits.end(),
                       [&](int w) { return done_[r][static_cast<std::size_t>(w)]; });
  }
  void finish(std::size_t r, std::size_t stream) {
    done_[r][static_cast<std::size_t>(queues_[r][stream].front())] = true;
    queues_[r][stream].pop_front();
  }

  /// Run one op on every stream that can, in random order. Returns: false if no stream can.
  bool step() {
    std::vector<std::pair<std::size_t, std::size_t>> all;
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      for (std::size_t s = 0; s < queues_[r].size(); ++s)
        if (!queues_[r][s].empty()) all.push_back({r, s});
    std::shuffle(all.begin(), all.end(), random_);
    bool moved = false;
    for (auto [r, s] : all)
      if (!queues_[r][s].empty() && is_ready(r, queues_[r][s].front())) moved |= run_next(r, s);
    return moved;
  }

  bool run_next(std::size_t r, std::size_t s) {
    const op& o = op_at(r, queues_[r][s].front());
    switch (o.kind) {
      case op_kind::compute:
        compute(ranks_[r], o, m_, difference_);
        break;
      case op_kind::send:
        send(r, o);
        break;
      case op_kind::receive:
        if (!receive(r, o)) return false;
        break;
      default:
        return meet(o);
    }
    finish(r, s);
    return true;
  }

  struct message {
    payload data;
    int number;
    std::size_t bytes;
  };
  using channel = std::tuple<int, int, int>;  // communicator, from, to

  void expect_member(std::size_t r, const op& o) const {
    expect(o.communicator >= 0 && o.communicator < static_cast<int>(p_.communicators.size()),
           "a communicator that is none");
    const std::vector<int>& members = p_.communicators[static_cast<std::size_t>(o.communicator)].ranks;
    expect(std::find(members.begin(), members.end(), static_cast<int>(r)) != members.end(),
           "a rank communicates where it is no member");
  }
  void send(std::size_t r, const op& o) {
    expect_member(r, o);
    payload data = take(ranks_[r], communicated(o, false));
    expect(data.bytes() == o.bytes, "a send of other bytes than it says");
    sent_[{o.communicator, static_cast<int>(r), o.peer}].push_back({std::move(data), o.message, o.bytes});
  }
  bool receive(std::size_t r, const op& o) {
    expect_member(r, o);
    const auto at = sent_.find({o.communicator, o.peer, static_cast<int>(r)});
    if (at == sent_.end() || at->second.empty()) return false;
    const message m = std::move(at->second.front());
    at->second.pop_front();
    expect(m.number == o.message && m.bytes == o.bytes, "a receive of another message than the peer sends");
    put(ranks_[r], communicated(o, true), m.data);
    return true;
  }

  /// Find the stream of a member whose next op is a collective on this communicator.
  bool find_arrival(int communicator, std::size_t r, std::size_t& stream) const {
    for (std::size_t s = 0; s < queues_[r].size(); ++s) {
      if (queues_[r][s].empty()) continue;
      const op& o = op_at(r, queues_[r][s].front());
      if (o.kind != op_kind::collective || o.communicator != communicator ||
          !is_ready(r, queues_[r][s].front()))
        continue;
      stream = s;
      return true;
    }
    return false;
  }
  /// Run a collective if all members have arrived.
  bool meet(const op& o) {
    expect(o.communicator >= 0 && o.communicator < static_cast<int>(p_.communicators.size()),
           "a communicator that is none");
    const std::vector<int>& members = p_.communicators[static_cast<std::size_t>(o.communicator)].ranks;
    std::vector<std::size_t> streams(members.size());
    for (std::size_t k = 0; k < members.size(); ++k)
      if (!find_arrival(o.communicator, static_cast<std::size_t>(members[k]), streams[k])) return false;
    std::vector<member> all;
    for (std::size_t k = 0; k < members.size(); ++k) {
      const auto r = static_cast<std::size_t>(members[k]);
      all.push_back({&ranks_[r], &op_at(r, queues_[r][streams[k]].front())});
    }
    run_collective(all, random_());
    for (std::size_t k = 0; k < members.size(); ++k) finish(static_cast<std::size_t>(members[k]), streams[k]);
    return true;
  }

  const program& p_;
  const model_run& m_;
  const execution::loader* from_;
  std::mt19937 random_;
  std::vector<rank_state> ranks_;
  std::vector<std::vector<std::deque<int>>> queues_;  // by rank and stream: ops still to run
  std::vector<std::vector<bool>> done_;
  std::map<channel, std::deque<message>> sent_;
  std::string difference_;
};

}  // namespace

outcome run_program(const program& p, const model_run& m, unsigned seed, const execution::loader* from) {
  try {
    return machine(p, m, seed, from).run();
  } catch (const malformed& why) {
    return {false, why.what(), false};
  }
}

}  // namespace field
