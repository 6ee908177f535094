// SPDX-License-Identifier: Apache-2.0
// Structure, meetings and order. Given the certificate's order, that nothing hangs is one comparison per
// edge.
#include "verify_schedule.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

namespace rankc::codegen::verifying {

namespace {

class schedule_checker {
 public:
  explicit schedule_checker(const document& d) : d_(d) {}

  schedule check() {
    check_groups();
    for (int r = 0; r < ranks(); ++r) check_shape(r);
    meet();
    result_.causes.resize(ranks());
    for (int r = 0; r < ranks(); ++r) check_order(r);
    std::stable_sort(result_.order.begin(), result_.order.end(),
                     [&](id a, id b) { return at(a).position < at(b).position; });
    return std::move(result_);
  }

 private:
  int ranks() const { return static_cast<int>(d_.workers.size()); }
  const step& at(id i) const { return verifying::at(d_, i); }
  template <class... T>
  [[noreturn]] void refuse(id i, fmt::format_string<T...> text, T&&... facts) const {
    verifying::refuse(d_, i, text, std::forward<T>(facts)...);
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
            refuse(me, "uses bytes {}..{} (value {}) of an arena of {}", x.begin, x.end, x.value,
                   w.arena_bytes);
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
    result_.partners.resize(ranks());
    for (int r = 0; r < ranks(); ++r) result_.partners[r].resize(d_.workers[r].steps.size());
    for (const auto& [where, who] : meetings) {
      const bool pair = std::get<1>(where) >= 0;
      if (who.size() != (pair ? 2 : d_.groups[std::get<0>(where)].ranks.size()))
        refuse(who[0], "meets {} of its partners", who.size() - 1);
      for (const id& other : who) check_meeting(who[0], other);
      if (pair) check_values(who[0], who[1]);
      for (const id& i : who) result_.partners[i.rank][i.index] = who;
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
    for (int i = 0; i < n; ++i) {
      const id me{r, i};
      auto edges = causes(me, previous);
      for (const id& c : edges)
        if (at(c).position >= at(me).position)
          refuse(me, "comes before \"{}\", which it waits for", at(c).name);
      if (result_.partners[r][i].empty() || result_.partners[r][i][0] == me) result_.order.push_back(me);
      previous[at(me).stream] = i;
      result_.causes[r].push_back(std::move(edges));
    }
  }

  const document& d_;
  schedule result_;
};

}  // namespace

schedule check_schedule(const document& d) { return schedule_checker(d).check(); }

}  // namespace rankc::codegen::verifying
