// SPDX-License-Identifier: Apache-2.0
// Faults in exchanges of slots, and in sums over experts and routers: other ranks, other offsets, slabs that
// are too small.
#include "mutator.hpp"

namespace field {

namespace {

/// A communicator's kind, without the ranks of the group: "efsdp".
std::string_view kind_of(const communicator& c) {
  const std::string_view name = c.name;
  return name.substr(0, name.rfind(' '));
}
bool has(const communicator& c, int rank) { return std::count(c.ranks.begin(), c.ranks.end(), rank) > 0; }

/// Copies of all communicators of one kind, without other traffic.
class copied_groups {
 public:
  copied_groups(program& p, std::string_view kind) : p_(p), first_(p.communicators.size()) {
    for (std::size_t c = 0; c < first_; ++c)
      if (communicator copy = p.communicators[c]; kind_of(copy) == kind) p.communicators.push_back(copy);
  }
  /// The communicator of a rank; -1 if there is no such communicator.
  int of(int rank) const {
    for (std::size_t c = first_; c < p_.communicators.size(); ++c)
      if (has(p_.communicators[c], rank)) return static_cast<int>(c);
    return -1;
  }

 private:
  const program& p_;
  std::size_t first_;
};

/// Run a collective among as many other ranks: efsdp's in place of ep's, for example.
fault meet_others(mutator& m) {
  if (!m.turn_to(is_collective)) return {};
  const op chosen = m.at();
  const communicator own = m.p.communicators[static_cast<std::size_t>(chosen.communicator)];
  std::vector<std::string> kinds;
  for (const communicator& c : m.p.communicators)
    if (c.ranks.size() == own.ranks.size() && c.ranks != own.ranks && has(c, m.rank))
      kinds.emplace_back(kind_of(c));
  if (kinds.empty()) return {};
  const std::string kind = m.one_of(kinds), text = m.text();
  const copied_groups others(m.p, kind);
  for (int r = 0; r < static_cast<int>(m.p.ranks.size()); ++r)
    for (op& o : m.p.ranks[static_cast<std::size_t>(r)].ops)
      if (is_collective(o) && o.message == chosen.message && o.name == chosen.name && others.of(r) >= 0 &&
          kind_of(m.p.communicators[static_cast<std::size_t>(o.communicator)]) == kind_of(own))
        o.communicator = others.of(r);
  return {"other ranks", text + " over " + kind};
}

bool has_slots(const op& o) {
  return std::any_of(o.views.begin(), o.views.end(),
                     [](const view& v) { return !v.written && (v.port == "offsets" || v.port == "places"); });
}

/// Read the slots, or their places or offsets, of another microbatch or layer, on this rank or on all.
fault take_other_slots(mutator& m) {
  if (!m.turn_to(has_slots)) return {};
  const op own = m.at();
  const auto k = static_cast<std::size_t>(m.below(static_cast<int>(own.reads.size())));
  std::vector<int> others;
  for (int n = 0; n < m.i; ++n) {
    const op& o = m.ops()[static_cast<std::size_t>(n)];
    if (o.kind == own.kind && o.does == own.does && o.row == own.row && o.reads.size() == own.reads.size() &&
        o.reads[k].end - o.reads[k].begin == own.reads[k].end - own.reads[k].begin &&
        o.reads[k].value != own.reads[k].value)
      others.push_back(n);
  }
  if (others.empty()) return {};
  const int n = m.one_of(others);
  const std::string of = m.ops()[static_cast<std::size_t>(n)].name;
  const bool everywhere = m.below(2);
  for (int r = 0; r < static_cast<int>(m.p.ranks.size()); ++r) {
    std::vector<op>& ops = m.p.ranks[static_cast<std::size_t>(r)].ops;
    if ((r != m.rank && !everywhere) || m.i >= static_cast<int>(ops.size())) continue;
    op& o = ops[static_cast<std::size_t>(m.i)];
    if (o.name != own.name || ops[static_cast<std::size_t>(n)].name != of) continue;
    o.reads[k] = ops[static_cast<std::size_t>(n)].reads[k];
    o.reads[k].replaces = -1;
  }
  return {"other slots", m.text() + " as \"" + of + "\" read " + std::to_string(k)};
}

/// All exchanges of a program use slabs with fewer rows, and the exchanged offsets refer to these slabs.
fault shrink_slabs_of(mutator& m) {
  const auto exchanges = [](const op& o) { return is_collective(o) && exchanges_slots(o.does); };
  if (!m.turn_to(exchanges) || m.at().rows < 2) return {};
  const std::int64_t by = 1 + m.below(static_cast<int>(m.at().rows) - 1);
  const std::string text = m.text();
  for (rank_program& r : m.p.ranks)
    for (op& o : r.ops) {
      if (!exchanges(o)) continue;
      const auto members =
          static_cast<std::int64_t>(m.p.communicators[static_cast<std::size_t>(o.communicator)].ranks.size());
      for (view& v : o.views)
        if (v.port == "received") {
          o.bytes = o.bytes / static_cast<std::size_t>(o.rows) * static_cast<std::size_t>(o.rows - by);
          v.shape.dim[0] -= members * by;
        }
      o.rows -= by;
    }
  return {"smaller slabs", text + " by " + std::to_string(by)};
}

}  // namespace

const std::vector<fault_kind> edits_of_experts{meet_others, take_other_slots, shrink_slabs_of};

fault shrink_slabs(program& p, std::mt19937& random) {
  mutator m(p, random);
  return shrink_slabs_of(m);
}

}  // namespace field
