// SPDX-License-Identifier: Apache-2.0
// Faults between ranks that no rank can detect alone: another reduction, members in another order.
#include "mutator.hpp"

namespace field {

namespace {

/// Visit the op of each member of a collective.
template <class Each>
void each_member(program& p, const op& of, Each each) {
  const op chosen = of;
  for (int r : std::vector<int>(p.communicators[static_cast<std::size_t>(chosen.communicator)].ranks))
    for (op& o : p.ranks[static_cast<std::size_t>(r)].ops)
      if (o.kind == op_kind::collective && o.message == chosen.message &&
          o.communicator == chosen.communicator)
        each(o);
}

fault do_another_collective(mutator& m) {
  if (!m.turn_to(is_collective)) return {};
  collective_kind does = static_cast<collective_kind>(m.below(4));
  if (does == m.at().does)
    does =
        does == collective_kind::all_reduce ? collective_kind::all_reduce_max : collective_kind::all_reduce;
  if (m.below(4)) each_member(m.p, m.at(), [&](op& o) { o.does = does; });
  else m.at().does = does;
  return {"another collective", m.text()};
}

fault permute_members(mutator& m) {
  std::vector<communicator*> several;
  for (communicator& c : m.p.communicators)
    if (c.ranks.size() > 1) several.push_back(&c);
  if (several.empty()) return {};
  communicator& c = *m.one_of(several);
  std::swap(c.ranks[0], c.ranks[static_cast<std::size_t>(1 + m.below(static_cast<int>(c.ranks.size()) - 1))]);
  return {"order of members", "communicator " + c.name};
}

fault leave_out_reduction(mutator& m) {
  if (!m.turn_to([](const op& o) {
        return is_collective(o) &&
               (o.does == collective_kind::all_reduce || o.does == collective_kind::all_reduce_max);
      }))
    return {};
  const std::string text = m.text();
  leave_out_sum(m.p, m.at());
  return {"leave out a reduction", text};
}

/// The ranks of a collective form other groups: each group gives its last member to the next, or a single
/// group splits in two.
fault regroup(mutator& m) {
  if (!m.turn_to(is_collective)) return {};
  const op chosen = m.at();
  const std::size_t size = m.p.communicators[static_cast<std::size_t>(chosen.communicator)].ranks.size();
  std::vector<std::pair<int, op*>> all;
  for (std::size_t r = 0; r < m.p.ranks.size(); ++r)
    for (op& o : m.p.ranks[r].ops)
      if (is_collective(o) && o.message == chosen.message && o.name == chosen.name)
        all.push_back({static_cast<int>(r), &o});
  std::vector<int> ranks;
  for (const auto& [rank, o] : all) ranks.push_back(rank);
  const bool is_single = ranks.size() == size;
  const std::size_t each = is_single ? size / 2 : size;
  if (each == 0 || ranks.size() % each || std::adjacent_find(ranks.begin(), ranks.end()) != ranks.end())
    return {};
  if (!is_single) std::rotate(ranks.begin(), ranks.end() - 1, ranks.end());
  const std::string text = m.text();
  for (std::size_t g = 0; g * each < ranks.size(); ++g) {
    const auto begin = ranks.begin() + static_cast<std::ptrdiff_t>(g * each);
    communicator group{"other groups " + std::to_string(g),
                       {begin, begin + static_cast<std::ptrdiff_t>(each)}};
    std::sort(group.ranks.begin(), group.ranks.end());
    m.p.communicators.push_back(group);
    for (const auto& [rank, o] : all)
      if (std::count(group.ranks.begin(), group.ranks.end(), rank))
        o->communicator = static_cast<int>(m.p.communicators.size()) - 1;
  }
  return {"other groups", text};
}

/// Members send their parts of a sum in bf16, or stop doing so.
fault change_bf16(mutator& m) {
  if (!m.turn_to(is_collective)) return {};
  const auto flip = [](op& o) { o.in_bf16 = !o.in_bf16; };
  if (m.below(4)) each_member(m.p, m.at(), flip);
  else flip(m.at());
  return {"sums in bf16", m.text()};
}

/// A collective is row-pipelined with another op, or with none.
fault change_by_rows(mutator& m) {
  const bool of_pairs = m.below(4) > 0;
  const auto suits = [&](const op& o) { return is_collective(o) && (!of_pairs || o.by_rows > 0); };
  if (!m.turn_to(suits)) return {};
  const int by = m.below(3), old = m.at().by_rows;
  each_member(m.p, m.at(), [by](op& o) { o.by_rows = by; });
  return m.done("order: row-pipelined", " with the op " + std::to_string(by) + " away", by != old);
}

fault exchange_two_ranks(mutator& m) {
  const int ranks = static_cast<int>(m.p.ranks.size()), other = m.below(ranks);
  if (other == m.rank) return {};
  exchange_places(m.p, m.rank, other);
  return {"places of two ranks", "ranks " + std::to_string(m.rank) + " and " + std::to_string(other)};
}

}  // namespace

void exchange_places(program& p, int one, int other) {
  const auto place_of = [=](int rank) {
    if (rank == one) return other;
    return rank == other ? one : rank;
  };
  std::swap(p.ranks[static_cast<std::size_t>(one)], p.ranks[static_cast<std::size_t>(other)]);
  std::swap(p.ranks[static_cast<std::size_t>(one)].number, p.ranks[static_cast<std::size_t>(other)].number);
  for (communicator& c : p.communicators)
    for (int& rank : c.ranks) rank = place_of(rank);
  for (rank_program& r : p.ranks)
    for (op& o : r.ops)
      if (o.peer >= 0) o.peer = place_of(o.peer);
}

void leave_out_sum(program& p, const op& of) {
  const std::vector<int> members = p.communicators[static_cast<std::size_t>(of.communicator)].ranks;
  each_member(p, of, [&](op& o) {
    o.kind = op_kind::compute;
    o.views.clear();
    o.row = {};
    o.function.clear();
    o.bytes = 0;
    o.communicator = o.message = -1;
    const std::vector<access> reads = o.reads, writes = o.writes;
    o.reads.clear();
    o.writes.clear();
    for (std::size_t k = 0; k < writes.size() && k < reads.size(); ++k)
      for (int r : members) rename(p, r, writes[k].value, reads[k].value);
  });
}

const std::vector<fault_kind> faults_of_communication{change_bf16, change_by_rows};
const std::vector<fault_kind> edits_of_communication{do_another_collective, permute_members,
                                                     leave_out_reduction, regroup, exchange_two_ranks};

}  // namespace field
