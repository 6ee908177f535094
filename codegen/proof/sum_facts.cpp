// SPDX-License-Identifier: Apache-2.0
// The facts about sums must fit together before anything is held to them: a place of its own for each, the
// same relation on all members of a communicator, all holders of a name related to one another, and each
// parameter in the norm once.
#include "passes.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace rankc::codegen::proof {

namespace {

class facts {
 public:
  facts(const program& p, findings& wrong) : p_(p), wrong_(wrong) {
    for (const auto& r : p.ranks) {
      auto& of = by_name_.emplace_back();
      for (const sum& s : r.sums) of.emplace(s.name, &s);
    }
  }

  void check() {
    for (int r = 0; r < ranks() && !wrong_.full(); ++r) {
      check_places(r);
      for (const sum& s : p_.ranks[r].sums) check_relations(r, s);
    }
    if (!wrong_.none()) return;
    check_holders();
    for (int r = 0; r < ranks() && !wrong_.full(); ++r)
      for (const sum& s : p_.ranks[r].sums)
        if (s.kind == sum_kind::norm) check_norm(r, s);
  }

 private:
  int ranks() const { return static_cast<int>(p_.ranks.size()); }
  static const char* kind_of(const sum& s) { return sum_kind_names[static_cast<int>(s.kind)]; }

  void check_places(int r) {
    std::vector<byte_range> places;
    std::set<std::string> names;
    int norms = 0;
    for (const sum& s : p_.ranks[r].sums) {
      if (!names.insert(s.name).second) wrong_.add("RC7045: rank {}: two sums are named \"{}\"", r, s.name);
      places.push_back(s.at);
      if (s.collected != byte_range{}) places.push_back(s.collected);
      places.insert(places.end(), s.updates.begin(), s.updates.end());
      if (!is_of_parameter(s.kind) && !s.updates.empty())
        wrong_.add("RC7046: rank {}: the {} \"{}\" lists updates: a {} updates no weights", r, kind_of(s),
                   s.name, kind_of(s));
      norms += s.kind == sum_kind::norm;
    }
    if (norms > 1) wrong_.add("RC7047: rank {} has {} norms; one is allowed", r, norms);
    std::sort(places.begin(), places.end());
    for (std::size_t i = 0; i < places.size(); ++i)
      if (places[i].begin >= places[i].end || places[i].end > p_.ranks[r].arena_bytes ||
          (i > 0 && places[i].begin < places[i - 1].end))
        wrong_.add(
            "RC7048: rank {}: bytes {}..{} are given to a sum or its updates: they must not be empty, must "
            "lie in the arena of {} bytes and must overlap no other such bytes",
            r, places[i].begin, places[i].end, p_.ranks[r].arena_bytes);
  }

  const sum::relation* find(const sum& s, int communicator) const {
    const auto at = std::find_if(s.over.begin(), s.over.end(),
                                 [&](const auto& o) { return o.communicator == communicator; });
    return at == s.over.end() ? nullptr : &*at;
  }

  void check_relations(int r, const sum& s) {
    std::set<int> seen;
    for (const auto& [communicator, as] : s.over) {
      if (communicator < 0 || communicator >= static_cast<int>(p_.communicators.size()))
        return wrong_.add(
            "RC7049: rank {}: the {} \"{}\" names communicator {}; the program has {} communicators", r,
            kind_of(s), s.name, communicator, p_.communicators.size());
      const auto& c = p_.communicators[communicator];
      if (!seen.insert(communicator).second)
        wrong_.add("RC7050: rank {}: the {} \"{}\" names communicator \"{}\" twice", r, kind_of(s), s.name,
                   c.name);
      else if (std::find(c.ranks.begin(), c.ranks.end(), r) == c.ranks.end())
        wrong_.add("RC7051: rank {}: the {} \"{}\" names communicator \"{}\", which does not list the rank",
                   r, kind_of(s), s.name, c.name);
      for (int member : c.ranks) {
        const auto at = by_name_[member].find(s.name);
        const sum* other = at == by_name_[member].end() ? nullptr : at->second;
        const auto* back = other ? find(*other, communicator) : nullptr;
        if (!back || back->as != as || other->kind != s.kind ||
            other->at.end - other->at.begin != s.at.end - s.at.begin ||
            other->collected.end - other->collected.begin != s.collected.end - s.collected.begin)
          return wrong_.add(
              "RC7052: rank {}: the {} \"{}\" is {} over communicator \"{}\", but rank {} describes it "
              "otherwise: kind, letter and sizes must agree",
              r, kind_of(s), s.name, placement_letters[static_cast<int>(as)], c.name, member);
      }
    }
  }

  /// Whoever has a sum of a name has a part in the one that all have: nobody's is left out because nothing
  /// relates it.
  void check_holders() {
    std::map<std::string, std::vector<int>> holders;
    for (int r = 0; r < ranks(); ++r)
      for (const auto& [name, s] : by_name_[r]) holders[name].push_back(r);
    for (const auto& [name, of] : holders) {
      std::vector<int> root(ranks());
      std::iota(root.begin(), root.end(), 0);
      const auto top = [&](int r) {
        while (root[r] != r) r = root[r] = root[root[r]];
        return r;
      };
      for (int r : of)
        for (const auto& o : by_name_[r].at(name)->over)
          for (int member : p_.communicators[o.communicator].ranks) root[top(member)] = top(r);
      for (int r : of)
        if (top(r) != top(of[0]))
          return wrong_.add(
              "RC7053: rank {}: sum \"{}\" is also on rank {}, and no communicator relates the two", r, name,
              of[0]);
    }
  }

  /// Over the ranks among which a norm is summed each gradient is counted by one of its holders.
  void check_norm(int r, const sum& norm) {
    std::set<int> among{r};
    for (const auto& [communicator, as] : norm.over)
      if (as == placement::partial)
        among.insert(p_.communicators[communicator].ranks.begin(),
                     p_.communicators[communicator].ranks.end());
    std::map<std::string, int> times;
    for (int member : among)
      for (const sum& s : p_.ranks[member].sums)
        if (s.kind == sum_kind::gradient) times[s.name] += s.counted;
    for (const auto& [name, n] : times)
      if (n != 1)
        return wrong_.add(
            "RC7054: rank {}: the gradient \"{}\" is counted {} times in the norm, expected once", r, name,
            n);
    const auto mine = std::count_if(p_.ranks[r].sums.begin(), p_.ranks[r].sums.end(),
                                    [](const sum& s) { return s.kind == sum_kind::gradient && s.counted; });
    if (norm.terms != mine)
      wrong_.add("RC7055: rank {}: the norm has {} terms, but counts {} gradients of the rank", r, norm.terms,
                 mine);
  }

  const program& p_;
  findings& wrong_;
  std::vector<std::map<std::string, const sum*>> by_name_;  // of each rank
};

}  // namespace

void check_sum_facts(const program& p, findings& wrong) { facts(p, wrong).check(); }

}  // namespace rankc::codegen::proof
