// SPDX-License-Identifier: Apache-2.0
// Sums, along the ops of a rank: each value at the place of one has a number for how much of the sum is there
// and a bit for each communicator over which it is not summed yet. The two belong to the ops and not to the
// rank, so that ranks which run the same ops are followed once.
#include "verify_schedule.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <set>

namespace rankc::codegen::verifying {

namespace {

/// Follows the sums of one routine.
class follower {
 public:
  follower(const document& d, int rank) : d_(d), rank_(rank), r_(routine_of(d, rank)) {
    std::set<std::string> names;
    for (std::size_t t = 0; t < r_.totals.size(); ++t) {
      const total& x = r_.totals[t];
      std::set<int> slots;
      for (const auto& [slot, letter] : x.over) {
        if (!slots.insert(slot).second)
          verifying::refuse("RC7210: certificate, rank {}: sum \"{}\" is over a communicator twice", rank,
                            x.name);
        if (slot > 62)
          verifying::refuse(
              "RC7211: certificate, rank {}: sum \"{}\" is over the rank's communicator {}; at most the "
              "first 63 are supported",
              rank, x.name, slot);
      }
      if (!names.insert(x.name).second)
        verifying::refuse("RC7212: certificate, rank {}: two sums are named \"{}\"", rank, x.name);
      claim(x.begin, x.end, static_cast<int>(t), false);
      if (x.from != std::pair(x.begin, x.end)) claim(x.from.first, x.from.second, static_cast<int>(t), false);
      for (const auto& [begin, end] : x.updates) claim(begin, end, static_cast<int>(t), true);
      if (x.kind != "gradient" && x.kind != "choices" && !x.updates.empty())
        verifying::refuse("RC7213: certificate, rank {}: sum \"{}\" lists updates: a {} updates no weights",
                          rank, x.name, x.kind);
      if (x.kind == "norm" && std::exchange(norm_, static_cast<int>(t)) >= 0)
        verifying::refuse("RC7214: certificate, rank {}: the rank has two norms", rank);
    }
    std::uint64_t last = 0;
    for (const auto& [begin, c] : claims_) {
      if (begin >= c.end || begin < last || c.end > r_.arena_bytes)
        verifying::refuse(
            "RC7215: certificate, rank {}: bytes {}..{} of sum \"{}\" must not be empty, must lie in the "
            "arena of {} bytes and must overlap no other sum",
            rank, begin, c.end, r_.totals[c.of].name, r_.arena_bytes);
      last = c.end;
    }
  }

  void follow() {
    std::vector<int> order(r_.instructions.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return at(a).position < at(b).position; });
    for (int i : order) walk(i);
  }

 private:
  struct claimed {
    std::uint64_t end;
    int of;
    bool update;
  };
  struct content {
    int of, terms;
    std::uint64_t unsummed;         // a bit per communicator, in the numbers of the routine
    std::vector<int> counted = {};  // of a norm: gradients, in order
    bool operator==(const content&) const = default;
  };

  const instruction& at(int i) const { return r_.instructions[i]; }
  template <class... T>
  [[noreturn]] void refuse(int i, runtime::sentence<int, std::string, std::type_identity_t<T>...> about,
                           const T&... facts) const {
    verifying::refuse(d_, {rank_, i}, about, facts...);
  }
  void claim(std::uint64_t begin, std::uint64_t end, int of, bool update) {
    if (!claims_.try_emplace(begin, claimed{end, of, update}).second)
      verifying::refuse("RC7216: certificate, rank {}: two places of sums begin at byte {}", rank_, begin);
  }
  const claimed* claim_on(int i, const range& x) const {
    auto c = claims_.lower_bound(x.end);
    if (c == claims_.begin() || std::prev(c)->second.end <= x.begin) return nullptr;
    --c;
    if (c->first != x.begin || c->second.end != x.end)
      refuse(i,
             "RC7217: certificate, rank {}: op \"{}\" uses bytes {}..{}, but of sum \"{}\" it must use all "
             "bytes, {}..{}, or none",
             x.begin, x.end, r_.totals[c->second.of].name, c->first, c->second.end);
    return &c->second;
  }
  std::uint64_t mask(int t, char letter) const {
    std::uint64_t bits = 0;
    for (const auto& [slot, as] : r_.totals[t].over)
      if (as == letter) bits |= std::uint64_t{1} << slot;
    return bits;
  }
  const std::string& group_name(int slot) const { return d_.groups[d_.workers[rank_].groups[slot]].name; }
  std::string names(std::uint64_t bits) const {
    std::string text;
    for (int slot = 0; slot < 63; ++slot)
      if (bits >> slot & 1) text += (text.empty() ? "\"" : ", \"") + group_name(slot) + "\"";
    return text.empty() ? "no communicator" : text;
  }

  /// Of the groups over which a gradient has shards those that lead from the rank to others: each next one
  /// that leads to a rank which those before do not lead to. They lead to each rank along one way, so that a
  /// sum over them all has each shard once.
  std::uint64_t spanning(int i, int t) const {
    std::vector<std::size_t> ways;  // among the groups of the sum
    std::uint64_t bits = 0;
    const auto& over = r_.totals[t].over;
    for (std::size_t g = 0; g < over.size(); ++g) {
      if (over[g].second != 'S' && over[g].second != 'D') continue;
      const std::vector<int> known = ends_of(t, ways);
      const std::vector<int>& members = group_of(rank_, t, g);
      if (std::all_of(members.begin(), members.end(),
                      [&](int r) { return std::count(known.begin(), known.end(), r) > 0; }))
        continue;
      ways.push_back(g);
      bits |= std::uint64_t{1} << over[g].first;
    }
    std::vector<int> ends = ends_of(t, ways);
    std::sort(ends.begin(), ends.end());
    if (std::adjacent_find(ends.begin(), ends.end()) != ends.end())
      refuse(i, "RC7218: certificate, rank {}: op \"{}\" counts shards of sum \"{}\" twice in a sum over {}",
             r_.totals[t].name, names(bits));
    return bits;
  }
  /// The members of a group of a sum, as a rank has that sum.
  const std::vector<int>& group_of(int rank, int t, std::size_t g) const {
    const auto& theirs = routine_of(d_, rank).totals;
    const bool has_it = t < static_cast<int>(theirs.size()) && theirs[t].name == r_.totals[t].name &&
                        g < theirs[t].over.size();
    if (!has_it)
      verifying::refuse("RC7219: certificate, rank {}: the rank has no sum \"{}\" like that of rank {}", rank,
                        r_.totals[t].name, rank_);
    return d_.groups.at(d_.workers[rank].groups.at(theirs[t].over[g].first)).ranks;
  }
  /// Where all ways end that go along one group of a sum after the other, from the rank.
  std::vector<int> ends_of(int t, const std::vector<std::size_t>& ways) const {
    std::vector<int> ends{rank_};
    for (const std::size_t g : ways) {
      std::vector<int> further;
      for (const int r : ends) {
        const std::vector<int>& to = group_of(r, t, g);
        further.insert(further.end(), to.begin(), to.end());
      }
      ends = std::move(further);
    }
    return ends;
  }

  void walk(int i) {
    const instruction& s = at(i);
    std::map<int, const range*> reads, writes;  // by sum
    std::vector<const range*> updates;
    std::set<std::uint64_t> kept;
    for (const range& x : s.reads) {
      const claimed* c = claim_on(i, x);
      if (c && c->update) kept.insert(x.begin);
      else if (c) reads[c->of] = &x;
    }
    for (const range& x : s.writes) {
      const claimed* c = s.kind == "begin" ? nullptr : claim_on(i, x);
      if (c && c->update) updates.push_back(&x);
      else if (c) writes[c->of] = &x;
    }
    for (const auto& [t, x] : reads)
      if (!writes.count(t)) expect_whole(i, t, *x);
    for (const auto& [t, x] : writes) {
      const auto before = reads.count(t) ? std::optional(of_value(i, t, *reads[t])) : std::nullopt;
      const range* const from = before ? reads.at(t) : nullptr;
      const content after = s.kind == "collective" && !is_dealt(s, t, before.has_value())
                                ? reduced(i, t, *x, from, before)
                                : added(i, t, before, reads, writes);
      if (const auto [known, fresh] = contents_.try_emplace(x->value, after);
          !fresh && known->second != after)
        refuse(i,
               "RC7220: certificate, rank {}: op \"{}\" writes a value of sum \"{}\" that another op writes "
               "with other contributions",
               r_.totals[t].name);
    }
    for (const range* x : updates) {
      const int of = claims_.at(x->begin).of;
      const auto only_reads = [&](int t) { return reads.count(t) && !writes.count(t); };
      if (s.kind != "compute" || !updated_.insert(x->begin).second)
        refuse(i,
               "RC7221: certificate, rank {}: op \"{}\" writes bytes {}..{}, which one update must write, "
               "and nothing else",
               x->begin, x->end);
      if (!only_reads(of))
        refuse(i,
               "RC7222: certificate, rank {}: op \"{}\" updates weights or moments of sum \"{}\" without "
               "reading it",
               r_.totals[of].name);
      if (norm_ >= 0 && !only_reads(norm_))
        refuse(i,
               "RC7223: certificate, rank {}: op \"{}\" updates weights or moments of sum \"{}\" without "
               "reading the norm",
               r_.totals[of].name);
    }
    if (s.kind != "end") return;
    for (const auto& [begin, c] : claims_)
      if (c.update && (!kept.count(begin) || !updated_.count(begin)))
        refuse(i,
               "RC7224: certificate, rank {}: op \"{}\" must find weights or moments of sum \"{}\", bytes "
               "{}..{}, after one update",
               r_.totals[c.of].name, begin, c.end);
  }

  /// Whether an op makes a shard of a microbatch's sum.
  bool is_dealt(const instruction& s, int t, bool adds) const {
    return s.does == "reduce_scatter" && !adds && s.communicator <= 62 &&
           (mask(t, 'S') >> s.communicator & 1);
  }

  content of_value(int i, int t, const range& x) const {
    const auto known = contents_.find(x.value);
    if (known == contents_.end() || known->second.of != t)
      refuse(i,
             "RC7225: certificate, rank {}: op \"{}\" reads sum \"{}\" before anything has been added to it",
             r_.totals[t].name);
    return known->second;
  }

  void expect_whole(int i, int t, const range& x) const {
    const content c = of_value(i, t, x);
    if (c.unsummed)
      refuse(i,
             "RC7226: certificate, rank {}: op \"{}\" reads sum \"{}\", which is still to be summed over {}",
             r_.totals[t].name, names(c.unsummed));
    if (c.terms != r_.totals[t].terms)
      refuse(i, "RC7227: certificate, rank {}: op \"{}\" reads sum \"{}\" with {} of {} contributions",
             r_.totals[t].name, c.terms, r_.totals[t].terms);
  }

  content reduced(int i, int t, const range& x, const range* from, std::optional<content> before) const {
    const instruction& s = at(i);
    const std::uint64_t bit = s.communicator > 62 ? 0 : std::uint64_t{1} << s.communicator;
    const bool deals = mask(t, 'D') & bit;
    const bool takes = deals ? from && from->begin == r_.totals[t].from.first &&
                                   x.begin == r_.totals[t].begin && x.replaces < 0
                             : from && from->begin == x.begin && x.replaces >= 0;
    const bool fits = before && takes;
    if (deals && !(fits && s.does == "reduce_scatter"))
      refuse(i,
             "RC7228: certificate, rank {}: op \"{}\" writes sum \"{}\", which over communicator \"{}\" a "
             "reduce_scatter must move from bytes {}..{} to bytes {}..{}",
             r_.totals[t].name, group_name(s.communicator), r_.totals[t].from.first, r_.totals[t].from.second,
             r_.totals[t].begin, r_.totals[t].end);
    if (!deals && !(fits && s.does == "all_reduce"))
      refuse(i,
             "RC7229: certificate, rank {}: op \"{}\" writes sum \"{}\", which over communicator \"{}\" an "
             "all_reduce must sum in place",
             r_.totals[t].name, group_name(s.communicator));
    if (!(before->unsummed & bit))
      refuse(i,
             "RC7230: certificate, rank {}: op \"{}\" reduces sum \"{}\" over communicator \"{}\", but "
             "nothing is left to sum",
             r_.totals[t].name, group_name(s.communicator));
    before->unsummed &= ~bit;
    return *before;
  }

  content added(int i, int t, const std::optional<content>& before, const std::map<int, const range*>& reads,
                const std::map<int, const range*>& writes) const {
    if (at(i).kind != "compute" && at(i).kind != "collective")
      refuse(i,
             "RC7231: certificate, rank {}: op \"{}\" writes sum \"{}\" and is neither a computation nor a "
             "collective",
             r_.totals[t].name);
    if (writes.at(t)->begin != r_.totals[t].from.first)
      refuse(i,
             "RC7232: certificate, rank {}: op \"{}\" adds to sum \"{}\" where its reduced shards lie: the "
             "place of contributions is bytes {}..{}",
             r_.totals[t].name, r_.totals[t].from.first, r_.totals[t].from.second);
    content mine{t, 1, mask(t, 'P') | mask(t, 'D')};
    if (t == norm_) {
      mine.terms = 0;
      std::optional<std::uint64_t> shards;
      for (const auto& [g, x] : reads) {
        if (writes.count(g)) continue;
        const std::uint64_t of = spanning(i, g);
        if (shards.value_or(of) != of)
          refuse(i,
                 "RC7233: certificate, rank {}: op \"{}\" adds sum \"{}\" to the norm, but it is sharded "
                 "over other communicators than the rest",
                 r_.totals[g].name);
        shards = of;
        if (!r_.totals[g].counted)
          refuse(i,
                 "RC7234: certificate, rank {}: op \"{}\" counts sum \"{}\" in the norm, which another rank "
                 "counts",
                 r_.totals[g].name);
        mine.counted.push_back(g);
        ++mine.terms;
      }
      mine.unsummed |= shards.value_or(0);
    }
    if (!before) return mine;
    if (before->unsummed != mine.unsummed)
      refuse(i,
             "RC7235: certificate, rank {}: op \"{}\" adds to sum \"{}\", which is still to be summed over "
             "{}, a contribution that is to be summed over {}",
             r_.totals[t].name, names(before->unsummed), names(mine.unsummed));
    mine.terms += before->terms;
    mine.counted.insert(mine.counted.end(), before->counted.begin(), before->counted.end());
    std::sort(mine.counted.begin(), mine.counted.end());
    if (std::adjacent_find(mine.counted.begin(), mine.counted.end()) != mine.counted.end())
      refuse(i, "RC7236: certificate, rank {}: op \"{}\" counts a gradient in the norm twice");
    return mine;
  }

  const document& d_;
  const int rank_;
  const routine& r_;
  std::map<std::uint64_t, claimed> claims_;  // by first byte
  std::map<int, content> contents_;          // by value
  std::set<std::uint64_t> updated_;
  int norm_ = -1;
};

}  // namespace

void follow_totals(const document& d, int rank) { follower(d, rank).follow(); }

}  // namespace rankc::codegen::verifying
