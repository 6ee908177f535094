// SPDX-License-Identifier: Apache-2.0
// The checker. Given the order of the certificate, that nothing hangs is one comparison per edge; that nothing
// races is one walk along the order with, for each stretch of bytes, the writes and reads that nothing later on
// covers, and the set of all ops that have surely ended (a bit each) to compare them with.
#include <rankc/codegen/verify.hpp>

#include "verify_read.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

namespace rankc::codegen {

namespace verifying {

namespace {

struct id {
  int rank, index;
  auto operator<=>(const id&) const = default;
};

class checker {
 public:
  explicit checker(const document& d) : d_(d) {}

  void check() {
    check_groups();
    for (int r = 0; r < ranks(); ++r) check_shape(r);
    meet();
    for (int r = 0; r < ranks(); ++r) check_order(r);
    for (int r = 0; r < ranks(); ++r) check_memory(r);
  }

 private:
  int ranks() const { return static_cast<int>(d_.workers.size()); }
  const step& at(id i) const { return d_.workers[i.rank].steps[i.index]; }
  template <class... T>
  [[noreturn]] void refuse(id i, fmt::format_string<T...> text, T&&... facts) const {
    throw refusal(fmt::format("rank {}: \"{}\" ", i.rank, at(i).name) +
                  fmt::format(text, std::forward<T>(facts)...));
  }

  void check_groups() const {
    if (ranks() == 0) throw refusal("the certificate has no ranks");
    for (const auto& g : d_.groups) {
      const std::set<int> distinct(g.ranks.begin(), g.ranks.end());
      if (distinct.empty() || distinct.size() != g.ranks.size() || *distinct.begin() < 0 ||
          *distinct.rbegin() >= ranks())
        throw refusal(fmt::format("communicator \"{}\" must list distinct ranks of the program", g.name));
    }
  }

  bool in_group(int group, int rank) const {
    const auto& members = d_.groups[group].ranks;
    return std::count(members.begin(), members.end(), rank) == 1;
  }

  void check_shape(int r) const {
    const auto& w = d_.workers[r];
    const int n = static_cast<int>(w.steps.size());
    if (n < 2) throw refusal(fmt::format("rank {} has no begin and end", r));
    for (int i = 0; i < n; ++i) {
      const id me{r, i};
      const step& s = at(me);
      if ((s.kind == "begin") != (i == 0)) refuse(me, "breaks the rule that begin comes first, and once");
      if ((s.kind == "end") != (i == n - 1)) refuse(me, "breaks the rule that end comes last, and once");
      if (s.stream < 0 || s.stream >= d_.streams) refuse(me, "is on stream {} of {}", s.stream, d_.streams);
      if (s.position < 0) refuse(me, "has no position in the order");
      for (int before : s.waits)
        if (before < 0 || before >= i) refuse(me, "waits for op {}, which is not earlier", before);
      for (const auto* ranges : {&s.reads, &s.writes})
        for (const auto& x : *ranges)
          if (x.begin >= x.end || x.end > w.arena_bytes || x.value < 0)
            refuse(me, "uses bytes {}..{} (value {}) of an arena of {}", x.begin, x.end, x.value, w.arena_bytes);
      if (s.communicates) check_message(me);
    }
  }

  void check_message(id me) const {
    const step& s = at(me);
    if (s.communicator < 0 || s.communicator >= static_cast<int>(d_.groups.size()))
      refuse(me, "uses communicator {} of {}", s.communicator, d_.groups.size());
    if (!in_group(s.communicator, me.rank)) refuse(me, "uses a communicator that its rank is not in");
    if (!s.point_to_point) return;
    if (s.peer == me.rank || !in_group(s.communicator, s.peer)) refuse(me, "cannot have peer {}", s.peer);
    const bool sends = s.kind == "send";
    if (!(sends ? s.writes : s.reads).empty()) refuse(me, "must not {}", sends ? "write" : "read");
    const auto& moved = sends ? s.reads : s.writes;
    const auto add = [](std::uint64_t sum, const range& x) { return sum + (x.end - x.begin); };
    if (std::accumulate(moved.begin(), moved.end(), std::uint64_t{0}, add) != s.bytes)
      refuse(me, "does not move the {} bytes it says", s.bytes);
  }

  /// Number the uses of each communicator; those with the same key and number meet.
  void meet() {
    // communicator, sender, receiver (both -1: collective), count so far on this side
    using place = std::tuple<int, int, int, int>;
    std::map<place, std::vector<id>> meetings;
    for (int r = 0; r < ranks(); ++r) {
      std::map<std::tuple<int, int, int>, int> uses;
      for (int i = 0; i < static_cast<int>(d_.workers[r].steps.size()); ++i) {
        const step& s = at({r, i});
        if (!s.communicates) continue;
        const int from = !s.point_to_point ? -1 : s.kind == "send" ? r : s.peer;
        const int to = !s.point_to_point ? -1 : s.kind == "send" ? s.peer : r;
        const int n = uses[{s.communicator, from, to}]++;
        meetings[{s.communicator, from, to, n}].push_back({r, i});
      }
    }
    partners_.resize(ranks());
    for (int r = 0; r < ranks(); ++r) partners_[r].resize(d_.workers[r].steps.size());
    for (const auto& [where, who] : meetings) {
      const bool pair = std::get<1>(where) >= 0;
      if (who.size() != (pair ? 2 : d_.groups[std::get<0>(where)].ranks.size()))
        refuse(who[0], "meets {} of its partners", who.size() - 1);
      for (const id& other : who) check_meeting(who[0], other);
      if (pair) check_values(who[0], who[1]);
      for (const id& i : who) partners_[i.rank][i.index] = who;
    }
  }

  void check_meeting(id a, id b) const {
    const step &x = at(a), &y = at(b);
    if (x.name != y.name || x.message != y.message || x.bytes != y.bytes)
      refuse(a, "meets rank {}: \"{}\", another message", b.rank, y.name);
    if (x.position != y.position) refuse(a, "and its partner on rank {} have different positions", b.rank);
  }

  void check_values(id a, id b) const {
    const auto moved = [&](id i) {
      std::vector<std::pair<std::uint64_t, int>> sizes;
      for (const auto& x : at(i).kind == "send" ? at(i).reads : at(i).writes)
        sizes.emplace_back(x.end - x.begin, x.value);
      return sizes;
    };
    if (moved(a) != moved(b)) refuse(a, "carries other values than rank {} takes them for", b.rank);
  }

  /// The ops whose end the start of op `i` waits for directly.
  /// `previous` is the last op so far of each stream in use.
  std::vector<id> causes(id i, const std::map<int, int>& previous) const {
    std::vector<id> result;
    for (int w : at(i).waits) result.push_back({i.rank, w});
    if (at(i).kind == "end")
      for (const auto& [stream, last] : previous) result.push_back({i.rank, last});
    else if (at(i).kind != "begin")
      result.push_back({i.rank, previous.contains(at(i).stream) ? previous.at(at(i).stream) : 0});
    return result;
  }

  /// Every edge goes up in the certificate's order; also keeps the edges.
  void check_order(int r) {
    const int n = static_cast<int>(d_.workers[r].steps.size());
    std::map<int, int> previous;
    std::set<int> taken;
    causes_.resize(ranks());
    for (int i = 0; i < n; ++i) {
      const id me{r, i};
      auto edges = causes(me, previous);
      for (const id& c : edges)
        if (at(c).position >= at(me).position) refuse(me, "comes before \"{}\", which it waits for", at(c).name);
      if (!taken.insert(at(me).position).second) refuse(me, "shares its position with another op of the rank");
      if (partners_[r][i].empty() || partners_[r][i][0] == me) order_.push_back(me);
      previous[at(me).stream] = i;
      causes_[r].push_back(std::move(edges));
    }
    if (r == ranks() - 1)
      std::stable_sort(order_.begin(), order_.end(), [&](id a, id b) { return at(a).position < at(b).position; });
  }

  using bits = std::vector<std::uint64_t>;  // one per op of the rank looked at
  static bool has(const bits& set, int i) { return set[i / 64] >> (i % 64) & 1; }
  static void unite(bits& set, const bits& other) {
    for (std::size_t i = 0; i < set.size(); ++i) set[i] |= other[i];
  }

  /// For each op of rank `r` the ops of the rank that have surely ended when it starts.
  std::vector<bits> history(int r) const {
    const bits none((d_.workers[r].steps.size() + 63) / 64);
    std::vector<std::vector<bits>> ended(ranks());  // when an op ends, for all ranks
    for (int q = 0; q < ranks(); ++q) ended[q].resize(d_.workers[q].steps.size());
    std::vector<bits> started(d_.workers[r].steps.size());
    for (const id& first : order_) {
      auto members = partners_[first.rank][first.index];
      if (members.empty()) members = {first};
      bits all = none;
      for (const id& m : members) {
        bits& mine = ended[m.rank][m.index] = none;
        for (const id& c : causes_[m.rank][m.index]) unite(mine, ended[c.rank][c.index]);
        if (m.rank == r) started[m.index] = mine;
        unite(all, mine);
      }
      for (const id& m : members) {
        bits& mine = ended[m.rank][m.index];
        if (at(m).kind != "send") mine = all;  // a send may be buffered: its end tells nothing of its receive
        if (m.rank == r) mine[m.index / 64] |= std::uint64_t{1} << (m.index % 64);
      }
    }
    return started;
  }

  struct stretch {
    std::vector<std::pair<int, int>> writes;  // op and value; none of them has surely ended before another starts
    std::vector<int> reads;                   // likewise
  };
  using memory = std::map<std::uint64_t, stretch>;  // by first byte, up to the next

  static memory::iterator cut(memory& m, std::uint64_t byte) {
    const auto found = m.lower_bound(byte);
    if (found != m.end() && found->first == byte) return found;
    return m.emplace_hint(found, byte, std::prev(found)->second);
  }
  template <class Visit>
  static void visit(memory& m, const std::vector<range>& ranges, Visit each) {
    for (const auto& x : ranges) {
      auto here = cut(m, x.begin);
      for (const auto end = cut(m, x.end); here != end; ++here) each(here->second, here->first, x.value);
    }
  }

  void check_memory(int r) const {
    const auto started = history(r);
    std::vector<int> order(started.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int a, int b) { return at({r, a}).position < at({r, b}).position; });
    memory bytes{{0, {}}};
    for (int i : order) walk({r, i}, started[i], bytes);
    std::map<int, int> last_use;
    for (int i = 0; i < static_cast<int>(started.size()); ++i) {
      if (!at({r, i}).communicates) continue;
      const auto [use, first] = last_use.try_emplace(at({r, i}).communicator, i);
      if (!first && !has(started[i], use->second))
        refuse({r, i}, "and \"{}\" share a communicator and are not ordered", at({r, use->second}).name);
      use->second = i;
    }
  }

  void walk(id me, const bits& ended, memory& bytes) const {
    const step& s = at(me);
    visit(bytes, s.reads, [&](stretch& here, std::uint64_t byte, int value) {
      if (here.writes.empty()) refuse(me, "reads byte {}, which nothing has written", byte);
      for (const auto& [writer, what] : here.writes)
        if (!has(ended, writer) || what != value)
          refuse(me, "reads byte {} and may find it as \"{}\" leaves it", byte, at({me.rank, writer}).name);
    });
    visit(bytes, s.writes, [&](stretch& here, std::uint64_t byte, int) {
      for (int reader : here.reads)
        if (!has(ended, reader))
          refuse(me, "writes byte {} while \"{}\" may read it", byte, at({me.rank, reader}).name);
    });
    visit(bytes, s.reads, [&](stretch& here, std::uint64_t, int) {
      std::erase_if(here.reads, [&](int reader) { return reader == me.index || has(ended, reader); });
      here.reads.push_back(me.index);
    });
    visit(bytes, s.writes, [&](stretch& here, std::uint64_t byte, int value) {
      std::erase_if(here.writes, [&](const auto& w) { return has(ended, w.first); });
      for (const auto& [writer, what] : here.writes)
        if (writer == me.index && what != value) refuse(me, "writes two values to byte {}", byte);
      here.writes.emplace_back(me.index, value);
    });
  }

  const document& d_;
  std::vector<std::vector<std::vector<id>>> partners_;  // (ranks, ops): all that meet, itself included
  std::vector<std::vector<std::vector<id>>> causes_;    // (ranks, ops)
  std::vector<id> order_;                               // first members of all joint events
};

}  // namespace

}  // namespace verifying

std::string verify(const std::string& json_text) {
  try {
    const auto document = verifying::read(json_text);
    verifying::checker(document).check();
    return {};
  } catch (const verifying::refusal& sentence) {
    return sentence.what();
  }
}

}  // namespace rankc::codegen
