// SPDX-License-Identifier: Apache-2.0
#include "execution_model.hpp"

#include <algorithm>

namespace rankc::codegen::testing {

namespace {

std::uint64_t scramble(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

bool communicates(const op& o) {
  return o.kind == op_kind::send || o.kind == op_kind::receive || o.kind == op_kind::collective;
}

/// The sender and the receiver of a rank's op; -1 and -1 for a collective.
std::pair<int, int> ends_of(const op& o, int rank) {
  if (o.kind == op_kind::send) return {rank, o.peer};
  if (o.kind == op_kind::receive) return {o.peer, rank};
  return {-1, -1};
}

}  // namespace

execution_model::execution_model(const program& p) : program_(p) {
  if (refuse_structure()) return;
  link();
  find_pairs();
  lay_out();
}

/// The first fault that makes the program impossible to run; empty if there is none.
bool execution_model::refuse_structure() {
  const auto& communicators = program_.communicators;
  for (int r = 0; r < static_cast<int>(program_.ranks.size()); ++r) {
    bool ends = false;
    for (const auto& o : program_.ranks[r].ops) {
      ends |= o.kind == op_kind::end;
      if (o.stream < 0 || o.stream >= program_.streams) broken_ = o.name + " has no stream";
      for (const auto* accesses : {&o.reads, &o.writes})
        for (const auto& a : *accesses)
          if (a.begin >= a.end || a.end > program_.ranks[r].arena_bytes)
            broken_ = o.name + " leaves the arena";
      if (!communicates(o)) continue;
      const auto member = [&](int rank) {
        const auto& ranks = communicators[o.communicator].ranks;
        return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
      };
      if (o.communicator < 0 || o.communicator >= static_cast<int>(communicators.size()) || !member(r))
        broken_ = o.name + " has no communicator";
      else if (o.kind != op_kind::collective && (o.peer == r || !member(o.peer)))
        broken_ = o.name + " has no peer";
    }
    if (!ends) broken_ = "a rank has no end";
  }
  return !broken_.empty();
}

void execution_model::link() {
  for (int r = 0; r < static_cast<int>(program_.ranks.size()); ++r) {
    const int base = size();
    const auto& ops = program_.ranks[r].ops;
    std::vector<int> last(program_.streams, -1), begins;
    for (int i = 0; i < static_cast<int>(ops.size()); ++i) {
      const op& o = ops[i];
      std::vector<int> causes = begins;
      if (last[o.stream] >= 0) causes.push_back(last[o.stream]);
      for (int w : o.waits)
        if (w >= 0 && w < i) causes.push_back(base + w);
      if (o.kind == op_kind::end)
        for (int before : last)
          if (before >= 0) causes.push_back(before);
      if (o.kind == op_kind::begin) begins.push_back(base + i);
      last[o.stream] = base + i;
      ops_.push_back({.source = &o, .rank = r});
      ops_.back().causes = static_cast<int>(causes.size());
      for (int c : causes) ops_[c].followers.push_back(base + i);
      if (!communicates(o)) continue;
      const auto [from, to] = ends_of(o, r);
      const int fresh = static_cast<int>(channels_.size());
      const auto [it, added] = channel_index_.try_emplace({o.communicator, {from, to}}, fresh);
      if (added) channels_.push_back({o.communicator, from, to, {}, {}, {}, {}});
      ops_.back().channel = it->second;
    }
  }
}

void execution_model::find_pairs() {
  std::map<std::pair<int, int>, int> group_of;  // the collective of a rank's n-th call on a communicator
  std::map<std::pair<int, int>, int> entered;   // calls that a rank has made on a communicator
  for (int i = 0; i < size(); ++i) {
    const op& o = *ops_[i].source;
    if (o.kind != op_kind::collective) continue;
    const int n = entered[{ops_[i].rank, o.communicator}]++;
    if (o.by_rows == 0) continue;
    const int partner = o.does == collective_kind::all_gather ? i + o.by_rows : i - o.by_rows;
    const bool is_there = partner >= 0 && partner < size() && ops_[partner].rank == ops_[i].rank;
    if (!is_there) {
      broken_ = o.name + " has no product";
      return;
    }
    const int group =
        group_of.try_emplace({o.communicator, n}, static_cast<int>(pairs_.size())).first->second;
    if (group == static_cast<int>(pairs_.size()))
      pairs_.push_back({static_cast<int>(program_.communicators[o.communicator].ranks.size()), 0, {}});
    ops_[std::min(i, partner)].first_of = group;
    ops_[std::max(i, partner)].last_of = group;
  }
}

/// An op that writes over bytes which it reads must replace exactly that value.
bool execution_model::destroys_reads(const state& o) {
  for (const auto& w : o.writes)
    for (const auto& s : o.reads) {
      const bool meets = s.first < w.last && w.first < s.last, same = s.first == w.first && s.last == w.last;
      if (meets && !(same && w.replaces >= 0 && o.reads[w.replaces].value == s.value)) return true;
    }
  return false;
}

void execution_model::lay_out() {
  int base = 0;
  for (int r = 0, next = 0; r < static_cast<int>(program_.ranks.size()); ++r) {
    std::vector<std::size_t> bounds;
    for (const auto& o : program_.ranks[r].ops)
      for (const auto* accesses : {&o.reads, &o.writes})
        for (const auto& a : *accesses) bounds.insert(bounds.end(), {a.begin, a.end});
    std::sort(bounds.begin(), bounds.end());
    bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
    const auto spans = [&](const std::vector<access>& accesses) {
      std::vector<span> result;
      for (const auto& a : accesses) {
        const auto first = std::lower_bound(bounds.begin(), bounds.end(), a.begin) - bounds.begin();
        const auto last = std::lower_bound(bounds.begin(), bounds.end(), a.end) - bounds.begin();
        result.push_back({base + static_cast<int>(first), base + static_cast<int>(last), a.value,
                          static_cast<int>(a.type), a.replaces});
      }
      return result;
    };
    for (const auto& o : program_.ranks[r].ops) {
      state& s = ops_[next++];
      s.reads = spans(o.reads);
      s.writes = spans(o.writes);
      s.destroys_reads = destroys_reads(s);
    }
    base += static_cast<int>(bounds.size());
  }
  cells_.resize(base);
}

/// The order of later events models four kinds of hardware: arbitrary; streams of very different speed;
/// everything starts as soon as it can; nothing starts before it must.
std::uint64_t execution_model::priority(int event) const {
  const int op = event / 2;
  const bool end = event % 2;
  if (end && op == how_.delayed) return 0;
  const auto chance = scramble((std::uint64_t{how_.seed} << 32) + event) >> 8;
  const auto top = std::uint64_t{1} << 60;
  switch (how_.seed % 4) {
    case 0:
      return chance + 1;
    case 1: {
      const auto stream = ops_[op].rank * program_.streams + ops_[op].source->stream;
      return (scramble((std::uint64_t{how_.seed} << 32) + ~stream) & ~0xffffu) + (chance & 0xffff) + 1;
    }
    case 2:
      return chance + 1 + (end ? 0 : top);
    default:
      return chance + 1 + (end ? top : 0);
  }
}

void execution_model::enable(int op, bool end) {
  const int event = op * 2 + end;
  queue_.emplace_back(priority(event), event);
  std::push_heap(queue_.begin(), queue_.end());
}

std::string execution_model::run(const interleaving& how) {
  if (!broken_.empty()) return broken_;
  how_ = how;
  harm_.clear();
  queue_.clear();
  time_ = 0;
  unfinished_.assign(program_.ranks.size(), 0);
  for (auto& c : cells_) {
    c.reading = c.writing = 0;
    c.possible.clear();
  }
  for (auto& c : channels_) {
    c.sends.clear();
    c.receives.clear();
    c.gathered.clear();
    c.entered.assign(program_.ranks.size(), 0);
  }
  for (auto& g : pairs_) {
    g.started = 0;
    g.waiting.clear();
  }
  for (int i = 0; i < size(); ++i) {
    auto& o = ops_[i];
    o.missing = o.causes;
    o.started = o.ended = false;
    ++unfinished_[o.rank];
    if (o.missing == 0) enable(i, false);
  }
  while (!queue_.empty() && harm_.empty()) {
    std::pop_heap(queue_.begin(), queue_.end());
    const int event = queue_.back().second;
    queue_.pop_back();
    ++time_;
    event % 2 ? end(event / 2) : start(event / 2);
  }
  for (int i = 0; i < size() && harm_.empty(); ++i)
    if (!ops_[i].ended) harm("deadlock in " + ops_[i].source->name);
  return harm_;
}

void execution_model::start(int i) {
  auto& o = ops_[i];
  const auto& name = o.source->name;
  o.started = true;
  o.start_time = time_;
  o.held.clear();
  if (o.source->kind == op_kind::end && unfinished_[o.rank] != 1) return harm("the rank ends before its ops");
  for (const auto& s : o.reads)
    for (int c = s.first; c < s.last; ++c) {
      auto& x = cells_[c];
      if (x.writing > 0) return harm(name + " reads bytes that are being written");
      if (x.possible.empty()) return harm(name + " reads bytes without a value");
      for (const auto& [what, time] : x.possible)
        if (what != std::pair(s.value, s.type)) return harm(name + " reads another value");
      ++x.reading;
    }
  if (o.destroys_reads) return harm(name + " writes over what it reads");
  for (const auto& s : o.reads)
    for (int c = s.first; c < s.last; ++c) --cells_[c].reading;
  for (const auto& s : o.writes)
    for (int c = s.first; c < s.last; ++c) {
      if (cells_[c].reading > 0) return harm(name + " writes bytes that are being read");
      if (cells_[c].writing > 0) return harm(name + " writes bytes that another op writes");
    }
  for (const auto& s : o.writes) {
    o.held.emplace_back(s.value, s.type);
    for (int c = s.first; c < s.last; ++c) ++cells_[c].writing;
  }
  for (const auto& s : o.reads)
    for (int c = s.first; c < s.last; ++c) ++cells_[c].reading;
  if (o.first_of >= 0) ++pairs_[o.first_of].started;
  if (o.channel >= 0) communicate(i);
  if (o.first_of >= 0 || o.last_of >= 0) return finish(i);
  if (o.channel < 0) enable(i, true);
}

/// End an op of a row-pipelined pair. The first op ends alone; the last ends when all members' pairs have
/// started.
void execution_model::finish(int i) {
  if (ops_[i].last_of >= 0) pairs_[ops_[i].last_of].waiting.push_back(i);
  else enable(i, true);
  for (const int g : {ops_[i].first_of, ops_[i].last_of}) {
    if (g < 0 || pairs_[g].started < pairs_[g].members) continue;
    for (int last : pairs_[g].waiting) enable(last, true);
    pairs_[g].waiting.clear();
  }
}

void execution_model::gather(int i) {
  const op& o = *ops_[i].source;
  auto& c = channels_[ops_[i].channel];
  const auto n = static_cast<std::size_t>(c.entered[ops_[i].rank]++);
  if (n >= c.gathered.size()) c.gathered.emplace_back();
  auto& members = c.gathered[n];
  members.push_back(i);
  meet(members.front(), i);
  const bool all = members.size() == program_.communicators[o.communicator].ranks.size();
  if (all) check_bytes(members);
  if (o.by_rows > 0) return;
  if (is_shift(o.does)) return shift(members, i);
  if (!all) return;
  for (int m : members) enable(m, true);
}

/// Whether slots, or their offsets, fill slabs of the op's bytes, with as many scratch slabs.
static bool fits_slabs(const op& o) {
  if (o.reads.empty() || o.writes.size() != 2) return false;
  const access& slabs = o.does == collective_kind::from_experts ? o.reads[0] : o.writes[0];
  return slabs.end - slabs.begin == o.bytes && o.writes[1].end - o.writes[1].begin == o.bytes;
}

/// Whether each member of a collective of n reads and writes the bytes that the op states.
static bool fits_bytes(const op& o, std::size_t n) {
  const auto total = [](const std::vector<access>& list) {
    std::size_t sum = 0;
    for (const access& a : list) sum += a.end - a.begin;
    return sum;
  };
  if (exchanges_slots(o.does) && o.does != collective_kind::gather_offsets) return fits_slabs(o);
  std::size_t reads = o.bytes, writes = o.bytes;
  if (o.does == collective_kind::reduce_scatter) reads *= n;
  else if (o.does == collective_kind::all_gather) writes *= n;
  else if (o.does == collective_kind::all_to_all) writes *= 2;
  else if (o.does == collective_kind::gather_offsets) writes *= 2 * n;
  return total(o.reads) == reads && total(o.writes) == writes;
}

/// Check that all members move the bytes that they state, with one element type.
void execution_model::check_bytes(const std::vector<int>& members) {
  const communicator& group =
      program_.communicators[static_cast<std::size_t>(ops_[members[0]].source->communicator)];
  const auto n = static_cast<std::size_t>(std::max(group.size, static_cast<int>(members.size())));
  for (int m : members) {
    const op& o = *ops_[m].source;
    if (!fits_bytes(o, n)) harm(o.name + " moves other bytes than it has");
    if (!o.reads.empty() && !o.writes.empty() && o.reads[0].type != o.writes[0].type)
      harm(o.name + " makes another type of what it reads");
  }
}

/// A member's value is in its buffer, or with the next member already. Ends the members that waited for the
/// last to arrive.
void execution_model::shift(const std::vector<int>& members, int arrived) {
  const op& o = *ops_[arrived].source;
  const auto& ring = program_.communicators[o.communicator].ranks;
  const std::size_t count = ring.size(), by = o.does == collective_kind::shift ? 1 : count - 1;
  const auto place_of = [&](int m) {
    return static_cast<std::size_t>(std::find(ring.begin(), ring.end(), ops_[m].rank) - ring.begin());
  };
  for (int m : members) {
    std::vector<int> needed{ops_[m].rank, ring[(place_of(m) + count - by) % count]};
    if (!how_.buffered) needed.push_back(ring[(place_of(m) + by) % count]);
    const auto is_there = [&](int rank) {
      return std::any_of(members.begin(), members.end(), [&](int x) { return ops_[x].rank == rank; });
    };
    const bool waited = std::find(needed.begin(), needed.end(), ops_[arrived].rank) != needed.end();
    if (waited && std::all_of(needed.begin(), needed.end(), is_there)) enable(m, true);
  }
}

void execution_model::communicate(int i) {
  const op& o = *ops_[i].source;
  if (o.kind == op_kind::collective) return gather(i);
  auto& c = channels_[ops_[i].channel];
  const bool sends = o.kind == op_kind::send;
  auto &mine = sends ? c.sends : c.receives, &theirs = sends ? c.receives : c.sends;
  mine.push_back(i);
  if (sends && how_.buffered) enable(i, true);
  if (mine.size() > theirs.size()) return;
  const int send = sends ? i : theirs[mine.size() - 1], receive = sends ? theirs[mine.size() - 1] : i;
  meet(send, receive);
  // The receive writes the sent value, whatever value it names.
  const auto &from = ops_[send].source->reads, &to = ops_[receive].source->writes;
  for (std::size_t k = 0; k < to.size(); ++k) {
    const bool fits = k < from.size() && from[k].end - from[k].begin == to[k].end - to[k].begin;
    ops_[receive].held[k] =
        fits ? std::pair(from[k].value, static_cast<int>(from[k].type)) : std::pair(-1, 0);
  }
  if (!how_.buffered) enable(send, true);
  enable(receive, true);
}

void execution_model::meet(int a, int b) {
  const op &x = *ops_[a].source, &y = *ops_[b].source;
  if (x.bytes != y.bytes || x.message != y.message || x.name != y.name || x.does != y.does ||
      x.in_bf16 != y.in_bf16)
    harm(x.name + " meets " + y.name);
}

void execution_model::end(int i) {
  auto& o = ops_[i];
  o.ended = true;
  --unfinished_[o.rank];
  for (const auto& s : o.reads)
    for (int c = s.first; c < s.last; ++c) --cells_[c].reading;
  for (std::size_t k = 0; k < o.writes.size(); ++k)
    for (int c = o.writes[k].first; c < o.writes[k].last; ++c) {
      auto& x = cells_[c];
      --x.writing;
      // A write that ended after this one started may have come after it.
      std::erase_if(x.possible, [&](const auto& p) { return p.time < o.start_time; });
      x.possible.push_back({o.held[k], time_});
    }
  for (int f : o.followers)
    if (--ops_[f].missing == 0) enable(f, false);
}

}  // namespace rankc::codegen::testing
