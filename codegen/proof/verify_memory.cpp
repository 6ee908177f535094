// SPDX-License-Identifier: Apache-2.0
// Contents of memory. One walk along the certificate's order keeps, for each stretch of bytes, the writes and
// the reads that nothing later covers, and compares them with the set of ops that have surely ended, a bit
// each.
#include "verify_schedule.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <numeric>

namespace rankc::codegen::verifying {

namespace {

class memory_checker {
 public:
  memory_checker(const document& d, const schedule& s) : d_(d), schedule_(s) {}

  void check(int r) const {
    const auto started = history(r);
    std::vector<int> order(started.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int a, int b) {
      return at({r, a}).position < at({r, b}).position;
    });
    memory bytes{{0, {}}};
    for (int i : order) walk({r, i}, started[i], bytes);
    check_communicators(r, started);
  }

 private:
  const step& at(id i) const { return verifying::at(d_, i); }
  template <class... T>
  [[noreturn]] void refuse(id i, fmt::format_string<T...> text, T&&... facts) const {
    verifying::refuse(d_, i, text, std::forward<T>(facts)...);
  }

  using bits = std::vector<std::uint64_t>;  // one per op of the rank looked at
  static bool has(const bits& set, int i) { return set[i / 64] >> (i % 64) & 1; }
  static void unite(bits& set, const bits& other) {
    for (std::size_t i = 0; i < set.size(); ++i) set[i] |= other[i];
  }

  /// For each op of rank `r` the ops of the rank that have surely ended when it starts.
  std::vector<bits> history(int r) const {
    const bits none((d_.workers[r].steps.size() + 63) / 64);
    std::vector<std::vector<bits>> ended;  // the same when it ends, for the ops of all ranks
    for (const auto& w : d_.workers) ended.emplace_back(w.steps.size());
    std::vector<bits> started(d_.workers[r].steps.size());
    for (const id& first : schedule_.order) {
      auto members = schedule_.partners[first.rank][first.index];
      if (members.empty()) members = {first};
      bits all = none;
      for (const id& m : members) {
        bits& mine = ended[m.rank][m.index] = none;
        for (const id& c : schedule_.causes[m.rank][m.index]) unite(mine, ended[c.rank][c.index]);
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

  void check_communicators(int r, const std::vector<bits>& started) const {
    std::map<int, int> last_use;
    for (int i = 0; i < static_cast<int>(started.size()); ++i) {
      if (!at({r, i}).communicates) continue;
      const auto [use, first] = last_use.try_emplace(at({r, i}).communicator, i);
      if (!first && !has(started[i], use->second))
        refuse({r, i}, "and \"{}\" share a communicator and are not ordered", at({r, use->second}).name);
      use->second = i;
    }
  }

  struct stretch {
    std::vector<std::pair<int, int>>
        writes;              // op and value; none of them has surely ended before another starts
    std::vector<int> reads;  // likewise
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
  const schedule& schedule_;
};

}  // namespace

void check_memory(const document& d, const schedule& s) {
  for (int r = 0; r < static_cast<int>(d.workers.size()); ++r) memory_checker(d, s).check(r);
}

}  // namespace rankc::codegen::verifying
