// SPDX-License-Identifier: Apache-2.0
// Checks structure, matching of communication, and order. In the certificate's order, one comparison for each
// edge shows that the step cannot deadlock. Rules about the ops alone are checked once for all ranks that run
// them.
#include "../certificate/call_operands.hpp"
#include "schedule.hpp"

#include <rankc/codegen/sorted_accesses.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

namespace rankc::codegen::verifying {

namespace {

constexpr int most_positions = 1 << 24;
constexpr std::size_t most_accesses = 1 << 14;

class schedule_checker {
 public:
  explicit schedule_checker(const step& d) : d_(d), result_(d) {}

  schedule check() {
    check_groups();
    const std::vector<std::vector<int>> listing = communicators_that_list();
    std::vector<bool> seen(d_.programs.size());
    for (int r = 0; r < ranks(); ++r) {
      if (!seen[d_.ranks[r].program]) check_shape(r);
      seen[d_.ranks[r].program] = true;
      check_messages(r, listing);
    }
    if (const auto unused = std::find(seen.begin(), seen.end(), false); unused != seen.end())
      verifying::refuse("RC7155: certificate: program {} is run by no rank", unused - seen.begin());
    meet();
    for (const auto& r : d_.programs) result_.causes.push_back(causes_of(r));
    for (int r = 0; r < ranks(); ++r) check_order(r);
    return std::move(result_);
  }

 private:
  int ranks() const { return static_cast<int>(d_.ranks.size()); }
  const listed_op& at(id i) const { return verifying::at(d_, i); }
  template <class... T>
  [[noreturn]] void refuse(id i, runtime::sentence<int, std::string, std::type_identity_t<T>...> about,
                           const T&... facts) const {
    verifying::refuse(d_, i, about, facts...);
  }

  void check_groups() const {
    if (ranks() == 0) verifying::refuse("RC7156: certificate: a step has no ranks");
    std::set<std::string> names;
    for (const auto& g : d_.communicators) {
      if (!names.insert(g.name).second)
        verifying::refuse("RC7267: certificate: two communicators are called \"{}\"; expected each name once",
                          g.name);
      const std::set<int> distinct(g.ranks.begin(), g.ranks.end());
      if (distinct.empty() || distinct.size() != g.ranks.size() || *distinct.begin() < 0 ||
          *distinct.rbegin() >= ranks())
        verifying::refuse("RC7157: certificate: communicator \"{}\" must list ranks of 0..{}, each once",
                          g.name, ranks() - 1);
      const int listed = static_cast<int>(g.ranks.size());
      if (g.size < listed)
        verifying::refuse("RC7158: certificate: communicator \"{}\" lists {} ranks, more than its size of {}",
                          g.name, listed, g.size);
      if (d_.world == ranks() && g.size != listed)
        verifying::refuse(
            "RC7159: certificate: communicator \"{}\" lists {} ranks and has a size of {}: both must be "
            "equal where the step has all ranks of the world",
            g.name, listed, g.size);
    }
  }

  /// For each rank, the communicators that list it, in rising order.
  std::vector<std::vector<int>> communicators_that_list() const {
    std::vector<std::vector<int>> of_rank(d_.ranks.size());
    for (int g = 0; g < static_cast<int>(d_.communicators.size()); ++g)
      for (const int r : d_.communicators[g].ranks) of_rank[r].push_back(g);
    return of_rank;
  }

  void check_shape(int r) const {
    const auto& w = program_of(d_, r);
    const int n = static_cast<int>(w.ops.size());
    std::vector<int> types(d_.ranks[r].values.size(), -1);
    if (n < 2)
      verifying::refuse("RC7160: certificate, rank {}: {} ops are too few for a begin and an end", r, n);
    for (int i = 0; i < n; ++i) {
      const id me{r, i};
      const listed_op& s = at(me);
      if ((s.kind == op_kind::begin) != (i == 0))
        refuse(me,
               "RC7161: certificate, rank {}: op \"{}\" breaks the rule that the first op, and no other, is "
               "a begin");
      if ((s.kind == op_kind::end) != (i == n - 1))
        refuse(me,
               "RC7162: certificate, rank {}: op \"{}\" breaks the rule that the last op, and no other, is "
               "an end");
      if (s.stream < 0 || s.stream >= d_.streams)
        refuse(me, "RC7163: certificate, rank {}: op \"{}\" is on stream {}; the step has streams 0..{}",
               s.stream, d_.streams - 1);
      if (s.position < 0 || s.position > most_positions)
        refuse(me, "RC7164: certificate, rank {}: op \"{}\" has position {}, expected 0..{}", s.position,
               most_positions);
      for (int before : s.waits)
        if (before < 0 || before >= i)
          refuse(
              me,
              "RC7165: certificate, rank {}: op \"{}\" waits for op {}, which is not issued earlier: 0..{}",
              before, i - 1);
      for (const auto* ranges : {&s.reads, &s.writes})
        for (const auto& x : *ranges)
          if (x.begin >= x.end || x.end > w.arena_bytes || x.value < 0)
            refuse(me,
                   "RC7166: certificate, rank {}: op \"{}\" uses bytes {}..{} for value {}: bytes must not "
                   "be empty, must lie in the arena of {} bytes and must hold a value of 0 or more",
                   x.begin, x.end, x.value, w.arena_bytes);
      for (const auto* ranges : {&s.reads, &s.writes})
        for (const auto& x : *ranges)
          if (int& type = types[x.value]; type >= 0 && type != static_cast<int>(x.type))
            refuse(me,
                   "RC7167: certificate, rank {}: op \"{}\" uses bytes {}..{} as {}, but their value is {}",
                   x.begin, x.end, element_type_names[static_cast<int>(x.type)], element_type_names[type]);
          else type = static_cast<int>(x.type);
      check_size(me);
      check_overwriting(me);
      if (is_message(s)) check_move(me);
    }
  }

  /// Limits the number of accesses of a kernel or a communication, because its checks compare all pairs of
  /// them.
  void check_size(id me) const {
    const listed_op& s = at(me);
    const bool is_over_all = s.kind == op_kind::begin || s.kind == op_kind::end || is_over_regions(s);
    const std::size_t accesses = s.reads.size() + s.writes.size(),
                      most = std::max({accesses, s.operands.size(), s.views.size()});
    if (!is_over_all && most > most_accesses)
      refuse(me,
             "RC7268: certificate, rank {}: op \"{}\" has {} reads and writes, {} operands and {} views; "
             "expected {} of each at most",
             accesses, s.operands.size(), s.views.size(), most_accesses);
  }

  /// Checks that no write overlaps a read of the same op, except the read that it replaces byte for byte.
  void check_overwriting(id me) const {
    const listed_op& s = at(me);
    const int reads = static_cast<int>(s.reads.size());
    const sorted_accesses by_begin(s.reads);
    for (const access& w : s.writes) {
      if (w.replaces < -1 || w.replaces >= reads)
        refuse(me,
               "RC7168: certificate, rank {}: op \"{}\" writes bytes {}..{} in place of its read {}, but it "
               "has {} reads",
               w.begin, w.end, w.replaces, reads);
      const access* replaced = w.replaces < 0 ? nullptr : &s.reads[w.replaces];
      if (replaced && (replaced->begin != w.begin || replaced->end != w.end))
        refuse(
            me,
            "RC7269: certificate, rank {}: op \"{}\" writes bytes {}..{} in place of its read {}, of bytes "
            "{}..{}; expected the same bytes",
            w.begin, w.end, w.replaces, replaced->begin, replaced->end);
      const access* met = by_begin.find_overlap(w, [&](const access& x) {
        return replaced && x.begin == w.begin && x.end == w.end && x.value == replaced->value;
      });
      if (met)
        refuse(me,
               "RC7169: certificate, rank {}: op \"{}\" writes bytes {}..{} over its read of value {}, bytes "
               "{}..{}, which is not the read that it replaces",
               w.begin, w.end, met->value, met->begin, met->end);
    }
  }

  /// Whether a collective exchanges slots: it sends slots, with their offsets, into slabs for the members or
  /// out of them. Or it exchanges offsets only, and all members have the same number of them.
  static bool is_exchange_of_slots(const listed_op& s, std::uint64_t members) {
    const bool of_offsets = s.does == collective_kind::share_offsets;
    if (s.reads.size() != (of_offsets ? 1 : 2) || s.writes.size() != 2 ||
        s.reads.back().type != element_type::i32)
      return false;
    const access &given = s.reads[0], &made = s.writes[0], &scratch = s.writes[1],
                 &slabs = s.does == collective_kind::from_experts ? given : made;
    const bool alike = !of_offsets || made.end - made.begin == given.end - given.begin;
    return alike && slabs.end - slabs.begin == s.bytes && s.bytes % members == 0 &&
           scratch.end - scratch.begin == s.bytes && scratch.type == element_type::bytes &&
           given.type == made.type;
  }

  /// Whether each member sends its offsets to all members, through scratch of the total size.
  static bool is_gathering_of_offsets(const listed_op& s, std::uint64_t members) {
    if (s.reads.size() != 1 || s.writes.size() != 2) return false;
    const access &given = s.reads[0], &made = s.writes[0], &scratch = s.writes[1];
    return given.type == element_type::i32 && made.type == element_type::i32 &&
           scratch.type == element_type::bytes && given.end - given.begin == s.bytes &&
           made.end - made.begin == s.bytes * members && scratch.end - scratch.begin == s.bytes * members;
  }

  /// Checks that a collective's bytes are those of its reads and writes.
  void check_collective(id me) const {
    const listed_op& s = at(me);
    const std::uint64_t members =
        static_cast<std::uint64_t>(d_.communicators[d_.ranks[me.rank].communicators[s.communicator]].size);
    const std::uint64_t in = bytes_of(s.reads), out = bytes_of(s.writes);
    bool right = in == s.bytes && s.reads.size() == s.writes.size();
    if (s.does == collective_kind::all_gather) right = in == s.bytes && out == in * members;
    else if (s.does == collective_kind::reduce_scatter) right = out == s.bytes && in == out * members;
    else if (s.does == collective_kind::all_to_all)
      right = in == s.bytes && in % members == 0 && s.reads.size() == 1 && s.writes.size() == 2 &&
              s.writes[0].end - s.writes[0].begin == in && s.writes[1].end - s.writes[1].begin == in &&
              s.reads[0].type == s.writes[0].type && s.writes[1].type == element_type::bytes;
    else if (s.does == collective_kind::to_experts || s.does == collective_kind::from_experts ||
             s.does == collective_kind::share_offsets)
      right = is_exchange_of_slots(s, members);
    else if (s.does == collective_kind::gather_offsets) right = is_gathering_of_offsets(s, members);
    else
      for (std::size_t i = 0; right && i < s.reads.size(); ++i)
        right = s.reads[i].end - s.reads[i].begin == s.writes[i].end - s.writes[i].begin &&
                s.reads[i].type == s.writes[i].type;
    if (is_shift(s.does)) right = right && s.reads.size() == 2;
    if (!right)
      refuse(me,
             "RC7170: certificate, rank {}: op \"{}\" reads {} bytes and writes {}: sizes, types or number "
             "of its tensors do not fit {} of {} bytes over {} ranks",
             in, out, collective_kind_names[static_cast<int>(s.does)], s.bytes, members);
  }

  static std::uint64_t bytes_of(const std::vector<access>& ranges) {
    const auto add = [](std::uint64_t sum, const access& x) { return sum + (x.end - x.begin); };
    return std::accumulate(ranges.begin(), ranges.end(), std::uint64_t{0}, add);
  }

  void check_move(id me) const {
    const listed_op& s = at(me);
    const bool sends = s.kind == op_kind::send;
    if (sends && !s.writes.empty())
      refuse(me, "RC7171: certificate, rank {}: op \"{}\" is a send and must not write");
    if (!sends && !s.reads.empty())
      refuse(me, "RC7172: certificate, rank {}: op \"{}\" is a receive and must not read");
    if (const std::uint64_t moved = bytes_of(sends ? s.reads : s.writes); moved != s.bytes)
      refuse(me, "RC7173: certificate, rank {}: op \"{}\" moves {} bytes of the arena for a message of {}",
             moved, s.bytes);
  }

  /// Checks that the communicators, peers and collectives of a rank exist, and that the rank is a member of
  /// each communicator.
  void check_messages(int r, const std::vector<std::vector<int>>& listing) const {
    const listed_rank& w = d_.ranks[r];
    const std::set<int> distinct(w.communicators.begin(), w.communicators.end());
    if (distinct.size() != w.communicators.size())
      verifying::refuse("RC7175: certificate, rank {}: the rank lists a communicator twice", r);
    for (const int g : w.communicators) {
      if (g < 0 || g >= static_cast<int>(d_.communicators.size()))
        verifying::refuse(
            "RC7176: certificate, rank {}: the rank lists communicator {}; the step has {} communicators", r,
            g, d_.communicators.size());
      if (!std::binary_search(listing[r].begin(), listing[r].end(), g))
        verifying::refuse(
            "RC7177: certificate, rank {}: the rank lists communicator \"{}\", which does not list the rank",
            r, d_.communicators[g].name);
    }
    for (int i = 0; i < static_cast<int>(program_of(d_, r).ops.size()); ++i) {
      const listed_op& s = at({r, i});
      if (!communicates(s)) continue;
      if (s.communicator < 0 || s.communicator >= static_cast<int>(w.communicators.size()))
        refuse(
            {r, i},
            "RC7178: certificate, rank {}: op \"{}\" uses communicator {}; the rank lists {} communicators",
            s.communicator, w.communicators.size());
      const auto& ranks = d_.communicators[w.communicators[s.communicator]].ranks;
      if (is_message(s) && (s.peer < 0 || s.peer >= static_cast<int>(ranks.size()) || ranks[s.peer] == r))
        refuse({r, i},
               "RC7179: certificate, rank {}: op \"{}\" has peer {}, which must be another of the "
               "communicator's members 0..{}",
               s.peer, ranks.size() - 1);
      if (!is_message(s)) check_collective({r, i});
    }
  }

  /// The messages from one rank to another on a communicator, or the collectives of its members, in order.
  struct queue {
    int group;
    bool pair;
    std::map<int, std::vector<id>> of_side;  // by rank
  };

  /// Numbers the uses of each communicator. Uses with the same number communicate with each other.
  void meet() {
    // By communicator, sender and receiver; for collectives, the last two are -1.
    std::map<std::tuple<int, int, int>, queue> queues;
    for (int r = 0; r < ranks(); ++r)
      for (int i = 0; i < static_cast<int>(program_of(d_, r).ops.size()); ++i) {
        const listed_op& s = at({r, i});
        if (!communicates(s)) continue;
        const int group = d_.ranks[r].communicators[s.communicator],
                  peer = is_message(s) ? d_.communicators[group].ranks[s.peer] : -1;
        int from = -1, to = -1;
        if (is_message(s)) {
          from = s.kind == op_kind::send ? r : peer;
          to = s.kind == op_kind::send ? peer : r;
        }
        auto& q = queues.try_emplace({group, from, to}, queue{group, is_message(s), {}}).first->second;
        q.of_side[r].push_back({r, i});
      }
    for (const auto& [key, q] : queues) meet(q);
  }

  void meet(const queue& q) {
    std::size_t most = 0;
    for (const auto& [rank, ops] : q.of_side) most = std::max(most, ops.size());
    const std::size_t sides = q.pair ? 2 : d_.communicators[q.group].ranks.size();
    for (std::size_t n = 0; n < most; ++n) {
      std::vector<id> who;
      for (const auto& [rank, ops] : q.of_side)
        if (n < ops.size()) who.push_back(ops[n]);
      if (who.size() != sides)
        refuse(who[0], "RC7180: certificate, rank {}: op \"{}\" is paired with {} of its {} partners",
               who.size() - 1, sides - 1);
      for (const id& other : who) check_meeting(who[0], other);
      if (q.pair) check_values(who[0], who[1]);
      result_.add(who);
    }
  }

  /// The bytes of the first of a shift's two tensors; 0 for all other ops.
  static std::uint64_t first_bytes(const listed_op& s) {
    return is_shift(s.does) && !s.reads.empty() ? s.reads[0].end - s.reads[0].begin : 0;
  }

  void check_meeting(id a, id b) const {
    const listed_op &x = at(a), &y = at(b);
    if (x.name != y.name || x.message != y.message || x.bytes != y.bytes ||
        first_bytes(x) != first_bytes(y) || x.does != y.does || x.in_bf16 != y.in_bf16 ||
        x.by_rows != y.by_rows)
      refuse(a,
             "RC7181: certificate, rank {}: op \"{}\" is paired with op \"{}\" of rank {}: name, message, "
             "kind and the bytes of each tensor must be equal",
             y.name, b.rank);
    if (x.position != y.position)
      refuse(a,
             "RC7182: certificate, rank {}: op \"{}\" has position {} and its partner on rank {} position "
             "{}: both must be equal",
             x.position, b.rank, y.position);
  }

  void check_values(id a, id b) const {
    const auto moved = [&](id i) {
      std::vector<std::tuple<std::uint64_t, int, element_type>> sizes;
      for (const auto& x : at(i).kind == op_kind::send ? at(i).reads : at(i).writes)
        sizes.emplace_back(x.end - x.begin, d_.ranks[i.rank].values[x.value], x.type);
      return sizes;
    };
    if (moved(a) != moved(b))
      refuse(a,
             "RC7183: certificate, rank {}: op \"{}\" and its partner on rank {} name other values, or other "
             "sizes or types of them",
             b.rank);
  }

  /// For each op, the ops for whose end its start waits directly.
  std::vector<std::vector<int>> causes_of(const listed_program& r) const {
    std::vector<std::vector<int>> result;
    std::vector<int> previous(d_.streams, -1);  // by stream
    for (int i = 0; i < static_cast<int>(r.ops.size()); ++i) {
      const listed_op& s = r.ops[i];
      auto& causes = result.emplace_back(s.waits);
      if (s.kind == op_kind::end)
        std::copy_if(previous.begin(), previous.end(), std::back_inserter(causes),
                     [](int last) { return last >= 0; });
      else if (s.kind != op_kind::begin) causes.push_back(std::max(previous[s.stream], 0));
      previous[s.stream] = i;
    }
    return result;
  }

  /// Checks that every edge leads to a later position in the certificate's order.
  void check_order(int r) const {
    const auto& causes = result_.causes[d_.ranks[r].program];
    for (int i = 0; i < static_cast<int>(causes.size()); ++i)
      for (int c : causes[i])
        if (at({r, c}).position >= at({r, i}).position)
          refuse({r, i},
                 "RC7184: certificate, rank {}: op \"{}\" has position {}, but op \"{}\", which it waits "
                 "for, has position {}",
                 at({r, i}).position, at({r, c}).name, at({r, c}).position);
  }

  const step& d_;
  schedule result_;
};

}  // namespace

schedule check_schedule(const step& d) { return schedule_checker(d).check(); }

}  // namespace rankc::codegen::verifying
