// SPDX-License-Identifier: Apache-2.0
// Checks the contents of memory. One walk in the certificate's order keeps, for each stretch of bytes, the
// writes and reads that nothing later covers. It compares them with the set of ops that have surely ended,
// one bit for each: all these writes and reads must have ended before another op writes there. Usually the
// order among the ops of one rank suffices, and then the result holds for all ranks that run them. Otherwise
// the rank is walked again, with the order that other ranks add.
#include <rankc/codegen/joined_accesses.hpp>

#include "ends.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>

namespace rankc::codegen::verifying {

namespace {

/// Numbers the ops of a program that touch memory or communicate. The sets of ended ops have only these.
class numbering {
 public:
  explicit numbering(const listed_program& p) {
    for (const listed_op& o : p.ops)
      of_.push_back(o.reads.empty() && o.writes.empty() && !communicates(o) ? -1 : count_++);
  }
  bits none() const { return bits(static_cast<std::size_t>(count_ + 63) / 64); }
  bool has(const bits& set, int op) const { return verifying::has(set, of_[op]); }
  void add(bits& set, int op) const {
    if (of_[op] >= 0) verifying::add(set, of_[op]);
  }

 private:
  std::vector<int> of_;  // by op; -1: it has no number
  int count_ = 0;
};

/// The bytes of one rank as its ops are visited in the certificate's order, each op with the set of ops that
/// have surely ended when it starts.
class memory {
 public:
  memory(const step& d, int rank, const numbering& numbers)
      : d_(d), rank_(rank), numbers_(numbers), uses_(program_of(d, rank).ops.size(), -1) {
    const auto& ops = program_of(d, rank).ops;
    std::map<int, int> last_use;
    for (int i = 0; i < static_cast<int>(ops.size()); ++i) {
      const listed_op& s = ops[i];
      for (const auto* ranges : {&s.reads, &s.writes})
        for (const auto& x : *ranges) borders_.insert(borders_.end(), {x.begin, x.end});
      if (!communicates(s)) continue;
      const auto [use, first] = last_use.try_emplace(s.communicator, i);
      if (!first) uses_[i] = std::exchange(use->second, i);
    }
    std::sort(borders_.begin(), borders_.end());
    borders_.erase(std::unique(borders_.begin(), borders_.end()), borders_.end());
    stretches_.resize(borders_.size());
  }

  void walk(int index, const bits& ended) {
    const auto reads = joined_accesses(at(index).reads), writes = joined_accesses(at(index).writes);
    if (const int before = uses_[index]; before >= 0 && !numbers_.has(ended, before))
      refuse(
          index,
          "RC7185: certificate, rank {}: op \"{}\" on stream {} and op \"{}\" on stream {} use communicator "
          "\"{}\", and no event orders them",
          at(index).stream, at(before).name, at(before).stream, name_of_communicator(index));
    visit(reads, [&](stretch& here, std::uint64_t byte, int value) {
      if (here.writes.empty())
        refuse(index, "RC7186: certificate, rank {}: op \"{}\" reads byte {}, which nothing has written",
               byte);
      for (const auto& [writer, what] : here.writes)
        if (!numbers_.has(ended, writer) || what != value)
          refuse(index,
                 "RC7187: certificate, rank {}: op \"{}\" reads byte {} and may find another value there, "
                 "written by op \"{}\"",
                 byte, at(writer).name);
    });
    visit(writes, [&](stretch& here, std::uint64_t byte, int) {
      for (int reader : here.reads)
        if (!numbers_.has(ended, reader))
          refuse(index, "RC7188: certificate, rank {}: op \"{}\" writes byte {} while op \"{}\" may read it",
                 byte, at(reader).name);
    });
    visit(reads, [&](stretch& here, std::uint64_t, int) {
      std::erase_if(here.reads, [&](int reader) { return reader == index || numbers_.has(ended, reader); });
      here.reads.push_back(index);
    });
    visit(writes, [&](stretch& here, std::uint64_t byte, int value) {
      std::erase_if(here.writes, [&](const auto& w) { return numbers_.has(ended, w.first); });
      for (const auto& [writer, what] : here.writes) {
        if (writer != index)
          refuse(index, "RC7250: certificate, rank {}: op \"{}\" writes byte {} while op \"{}\" may write it",
                 byte, at(writer).name);
        if (what != value)
          refuse(index, "RC7189: certificate, rank {}: op \"{}\" writes two values to byte {}", byte);
      }
      if (here.writes.empty()) here.writes.emplace_back(index, value);
    });
  }

 private:
  struct stretch {  // up to the next border
    std::vector<std::pair<int, int>>
        writes;              // op and value; none of them has surely ended before another starts
    std::vector<int> reads;  // likewise
  };

  const listed_op& at(int index) const { return verifying::at(d_, {rank_, index}); }
  const std::string& name_of_communicator(int index) const {
    const int own = at(index).communicator;
    return d_.communicators[d_.ranks[rank_].communicators[own]].name;
  }
  template <class... T>
  [[noreturn]] void refuse(int index, runtime::sentence<int, std::string, std::type_identity_t<T>...> about,
                           const T&... facts) const {
    verifying::refuse(d_, {rank_, index}, about, facts...);
  }
  template <class Visit>
  void visit(const std::vector<access>& ranges, Visit each) {
    for (const auto& x : ranges) {
      auto here = static_cast<std::size_t>(std::lower_bound(borders_.begin(), borders_.end(), x.begin) -
                                           borders_.begin());
      for (; borders_[here] != x.end; ++here) each(stretches_[here], borders_[here], x.value);
    }
  }

  const step& d_;
  const int rank_;
  const numbering& numbers_;
  std::vector<int> uses_;  // by op: the op before it on its communicator; -1: none
  std::vector<std::uint64_t> borders_;
  std::vector<stretch> stretches_;
};

/// Sorts ops by their position in the certificate's order.
template <class Op, class Position>
void sort_by(std::vector<Op>& ops, Position position) {
  std::stable_sort(ops.begin(), ops.end(),
                   [&](const Op& a, const Op& b) { return position(a) < position(b); });
}

/// Keeps, for each op of a program, the set of ops that have ended when it ends, until the last op that
/// directly follows it has read the set.
class kept_sets {
 public:
  explicit kept_sets(const std::vector<std::vector<int>>& causes)
      : causes_(causes), sets_(causes.size()), uses_(causes.size()) {
    for (const auto& list : causes)
      for (int c : list) ++uses_[c];
  }
  /// The ops that have ended when an op starts. Call it once for each op.
  bits at_start(int op, bits none) {
    for (int c : causes_[op]) {
      unite(none, sets_[c]);
      if (--uses_[c] == 0) sets_[c] = {};
    }
    return none;
  }
  void keep(int op, bits set) {
    if (uses_[op] > 0) sets_[op] = std::move(set);
  }

 private:
  const std::vector<std::vector<int>>& causes_;
  std::vector<bits> sets_;
  std::vector<int> uses_;
};

class histories {
 public:
  histories(const step& d, const schedule& s) : d_(d), schedule_(s) {
    for (const listed_program& p : d.programs) numbers_.emplace_back(p);
  }

  /// Walks through the ops of a rank, with the order among its ops only.
  void walk_alone(int rank) const {
    const auto& ops = program_of(d_, rank).ops;
    std::vector<int> order(ops.size());
    std::iota(order.begin(), order.end(), 0);
    sort_by(order, [&](int i) { return ops[i].position; });
    kept_sets ended(causes_of(rank));
    const numbering& numbers = numbers_of(rank);
    memory bytes(d_, rank, numbers);
    for (int i : order) {
      bits set = ended.at_start(i, numbers.none());
      bytes.walk(i, set);
      numbers.add(set, i);
      ended.keep(i, std::move(set));
    }
  }

  /// Walks through the ops of a rank, with the order that the ops of all ranks imply.
  void walk_among_all(int rank) const {
    std::vector<id> order;  // one op of each joint event
    std::vector<kept_sets> ended;
    for (int r = 0; r < static_cast<int>(d_.ranks.size()); ++r) {
      ended.emplace_back(causes_of(r));
      for (int i = 0; i < static_cast<int>(causes_of(r).size()); ++i)
        if (const id me{r, i}; schedule_.together(me)[0] == me) order.push_back(me);
    }
    sort_by(order, [&](const id& i) { return at(d_, i).position; });
    const numbering& numbers = numbers_of(rank);
    memory bytes(d_, rank, numbers);
    end_sets ends(d_, schedule_, numbers.none());
    for (const id& event : order) {
      const auto members = schedule_.together(event);
      std::vector<bits> sets;
      for (const id& m : members) {
        sets.push_back(ended[m.rank].at_start(m.index, numbers.none()));
        if (m.rank == rank) bytes.walk(m.index, sets.back());
      }
      sets = ends.at_ends(members, std::move(sets));
      for (std::size_t n = 0; n < members.size(); ++n) {
        const id m = members[n];
        if (m.rank == rank) numbers.add(sets[n], m.index);
        ended[m.rank].keep(m.index, std::move(sets[n]));
      }
    }
  }

 private:
  const std::vector<std::vector<int>>& causes_of(int rank) const {
    return schedule_.causes[d_.ranks[rank].program];
  }
  const numbering& numbers_of(int rank) const { return numbers_[d_.ranks[rank].program]; }

  const step& d_;
  const schedule& schedule_;
  std::vector<numbering> numbers_;  // by program
};

}  // namespace

void check_memory(const step& d, const schedule& s) {
  const histories history(d, s);
  enum class state { unknown, holds_alone, needs_others };
  std::vector<state> of_program(d.programs.size(), state::unknown);
  for (int r = 0; r < static_cast<int>(d.ranks.size()); ++r) {
    state& known = of_program[d.ranks[r].program];
    if (known == state::unknown) {
      try {
        history.walk_alone(r);
        known = state::holds_alone;
      } catch (const runtime::failure&) {
        known = state::needs_others;
      }
    }
    if (known == state::needs_others) history.walk_among_all(r);
  }
}

}  // namespace rankc::codegen::verifying
