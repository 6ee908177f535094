// SPDX-License-Identifier: Apache-2.0
// Sums, between ranks: that what the ranks say of a sum fits together, and that those who reduce one reduce
// the same.
#include "verify_schedule.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace rankc::codegen::verifying {

namespace {

/// The facts about sums, between ranks.
class agreement {
 public:
  explicit agreement(const document& d) : d_(d) {}

  void check() const {
    std::map<std::string, std::vector<int>> holders;
    for (int r = 0; r < static_cast<int>(d_.workers.size()); ++r)
      for (const total& t : routine_of(d_, r).totals) {
        holders[t.name].push_back(r);
        for (const auto& [slot, letter] : t.over) check_members(r, t, slot, letter);
        if (t.kind == "norm") check_counts(r, t);
      }
    for (const auto& [name, ranks] : holders)
      if (const auto reached = reach(name, ranks[0]); reached.size() != ranks.size())
        refuse("RC7200: certificate: sum \"{}\" is on {} ranks, but its communicators relate {} of them",
               name, ranks.size(), reached.size());
  }

 private:
  const total* find(int rank, const std::string& name) const {
    for (const total& t : routine_of(d_, rank).totals)
      if (t.name == name) return &t;
    return nullptr;
  }
  const group& group_of(int rank, int slot) const { return d_.groups[d_.workers[rank].groups[slot]]; }

  void check_members(int r, const total& t, int slot, char letter) const {
    const auto& known = d_.workers[r].groups;
    if (slot < 0 || slot >= static_cast<int>(known.size()))
      refuse(
          "RC7201: certificate, rank {}: sum \"{}\" is over communicator {}; the rank lists {} communicators",
          r, t.name, slot, known.size());
    for (int member : d_.groups[known[slot]].ranks) {
      const total* other = find(member, t.name);
      bool same = other && other->kind == t.kind && other->end - other->begin == t.end - t.begin &&
                  other->from.second - other->from.first == t.from.second - t.from.first;
      same = same && std::any_of(other->over.begin(), other->over.end(), [&](const auto& o) {
               const auto& of = d_.workers[member].groups;
               return o.second == letter && o.first >= 0 && o.first < static_cast<int>(of.size()) &&
                      of[o.first] == known[slot];
             });
      if (!same)
        refuse(
            "RC7202: certificate, rank {}: sum \"{}\" is {} over communicator \"{}\", but rank {} describes "
            "it otherwise: kind, letter and sizes must agree",
            r, t.name, letter, d_.groups[known[slot]].name, member);
    }
  }

  /// The ranks that have a sum of the name and are related to one of them, over any communicators.
  std::set<int> reach(const std::string& name, int from) const {
    std::set<int> reached{from};
    std::vector<int> next{from};
    while (!next.empty()) {
      const int r = next.back();
      next.pop_back();
      for (const auto& [slot, letter] : find(r, name)->over)
        for (int member : group_of(r, slot).ranks)
          if (reached.insert(member).second) next.push_back(member);
    }
    return reached;
  }

  void check_counts(int r, const total& norm) const {
    std::set<int> ranks{r};
    for (const auto& [slot, letter] : norm.over)
      if (letter == 'P') ranks.insert(group_of(r, slot).ranks.begin(), group_of(r, slot).ranks.end());
    std::set<std::string> counted, all;
    int mine = 0;
    for (int member : ranks)
      for (const total& t : routine_of(d_, member).totals) {
        if (t.kind != "gradient") continue;
        all.insert(t.name);
        if (t.counted && !counted.insert(t.name).second)
          refuse("RC7203: certificate, rank {}: the norm counts gradient \"{}\" twice", r, t.name);
        mine += member == r && t.counted;
      }
    if (counted != all)
      refuse("RC7204: certificate, rank {}: the norm counts {} of {} gradients, expected all", r,
             counted.size(), all.size());
    if (norm.terms != mine)
      refuse("RC7205: certificate, rank {}: the norm has {} terms, but the rank counts {} gradients", r,
             norm.terms, mine);
  }

  const document& d_;
};

/// The sums that an op writes, by name.
std::vector<std::string> written(const document& d, id i) {
  std::vector<std::string> names;
  for (const range& x : at(d, i).writes)
    for (const total& t : routine_of(d, i.rank).totals)
      if (x.begin < t.end && t.begin < x.end) names.push_back(t.name);
  return names;
}

}  // namespace

void check_totals(const document& d, const schedule& s) {
  agreement(d).check();
  std::vector<bool> followed(d.routines.size());
  for (int r = 0; r < static_cast<int>(d.workers.size()); ++r) {
    if (!followed[d.workers[r].routine]) follow_totals(d, r);
    followed[d.workers[r].routine] = true;
  }
  for (int r = 0; r < static_cast<int>(d.workers.size()); ++r)
    for (int i = 0; i < static_cast<int>(routine_of(d, r).instructions.size()); ++i) {
      const id me{r, i};
      if (at(d, me).kind != "collective" || s.together(me)[0] != me) continue;
      for (const id& other : s.together(me))
        if (written(d, other) != written(d, me))
          refuse(d, me,
                 "RC7206: certificate, rank {}: op \"{}\" and its partner on rank {} write different sums",
                 other.rank);
    }
}

}  // namespace rankc::codegen::verifying
