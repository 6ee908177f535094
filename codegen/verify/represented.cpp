// SPDX-License-Identifier: Apache-2.0
// Checks steps that list only some ranks of a world. The file lists the first ranks along some axes. Every
// other rank must be a listed rank shifted along these axes, so that a claim about the listed ranks holds for
// all ranks. A communicator that spans such axes must have a member at each of their listed indices, in their
// order. The communicators of ranks that differ only along such axes must differ only by the shift.
#include "schedule.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace rankc::codegen::verifying {

namespace {

constexpr std::size_t most_axes = 64;

/// The index of a rank along each axis.
using indices = std::vector<int>;

class world_checker {
 public:
  explicit world_checker(const step& d) : d_(d) {}

  void check() const {
    check_axes();
    check_ranks();
    for (const communicator& g : d_.communicators) check_members(g);
    const std::vector<int> kinds = kinds_of_communicators();
    for (int r = 0; r < static_cast<int>(d_.ranks.size()); ++r) check_shift(r, kinds);
  }

 private:
  bool is_cut(std::size_t axis) const { return d_.mesh[axis].listed < d_.mesh[axis].size; }

  void check_axes() const {
    if (d_.mesh.size() > most_axes)
      refuse("RC7276: certificate: the world has {} axes; expected {} at most", d_.mesh.size(), most_axes);
    std::int64_t ranks = 1;
    for (const listed_axis& a : d_.mesh) {
      if (a.size < 1 || a.listed < std::min(a.size, 2) || a.listed > a.size)
        refuse(
            "RC7255: certificate: axis {} of the world lists {} of its {} indices; expected at least 2, or "
            "all of them",
            a.name, a.listed, a.size);
      ranks = std::min<std::int64_t>(ranks * a.size, std::int64_t{d_.world} + 1);
    }
    if (ranks != d_.world)
      refuse("RC7256: certificate: the axes of the world do not have its {} ranks", d_.world);
  }

  indices indices_of(int number) const {
    indices at(d_.mesh.size());
    for (std::size_t a = at.size(); a-- > 0; number /= d_.mesh[a].size) at[a] = number % d_.mesh[a].size;
    return at;
  }
  int number_at(const indices& at) const {
    int number = 0;
    for (std::size_t a = 0; a < at.size(); ++a) number = number * d_.mesh[a].size + at[a];
    return number;
  }

  void check_ranks() const {
    std::size_t count = 1;
    std::vector<int> axes;
    for (const listed_axis& a : d_.mesh) {
      count *= static_cast<std::size_t>(a.listed);
      axes.push_back(static_cast<int>(axes.size()));
    }
    if (count != d_.ranks.size())
      refuse("RC7257: certificate: a step has {} ranks; expected {}, one at each listed index of the axes",
             d_.ranks.size(), count);
    const std::vector<int> expected = line(0, axes);
    for (std::size_t r = 0; r < expected.size(); ++r)
      if (d_.ranks[r].number != expected[r])
        refuse(
            "RC7278: certificate: rank {} of a step is rank {} of the world; expected rank {}, which is the "
            "next at the listed indices of the axes",
            r, d_.ranks[r].number, expected[r]);
  }

  /// The listed ranks from a rank on, at all indices along some axes. The last of these axes varies fastest.
  std::vector<int> line(int number, const std::vector<int>& along) const {
    std::vector<indices> all{indices_of(number)};
    for (int axis : along) {
      std::vector<indices> more;
      for (indices at : all)
        for (at[static_cast<std::size_t>(axis)] = 0;
             at[static_cast<std::size_t>(axis)] < d_.mesh[static_cast<std::size_t>(axis)].listed;
             ++at[static_cast<std::size_t>(axis)])
          more.push_back(at);
      all = std::move(more);
    }
    std::vector<int> numbers;
    for (const indices& at : all) numbers.push_back(number_at(at));
    return numbers;
  }

  std::vector<int> members_of(const communicator& g) const {
    std::vector<int> numbers;
    for (int r : g.ranks) numbers.push_back(d_.ranks[static_cast<std::size_t>(r)].number);
    return numbers;
  }

  void check_members(const communicator& g) const {
    std::int64_t size = 1;
    for (std::size_t i = 0; i < g.along.size(); ++i) {
      const int axis = g.along[i];
      if (axis < (i == 0 ? 0 : g.along[i - 1] + 1) || axis >= static_cast<int>(d_.mesh.size()) ||
          !is_cut(static_cast<std::size_t>(axis)))
        refuse(
            "RC7258: certificate: communicator \"{}\" leaves out members along axis {}: such axes must be in "
            "ascending order, and the world must list only a part of their indices",
            g.name, axis);
      size *= d_.mesh[static_cast<std::size_t>(axis)].size;
    }
    const std::vector<int> members = members_of(g);
    const bool is_whole = g.along.empty() ? g.size == static_cast<int>(members.size()) && is_level(members)
                                          : g.size == size && members == line(members[0], g.along);
    if (!is_whole)
      refuse(
          "RC7259: certificate: the {} members of communicator \"{}\", of {}, are not those at all listed "
          "indices of the axes that it spans, in their order",
          members.size(), g.name, g.size);
  }

  /// True if all members have one index along each axis that is listed in part.
  bool is_level(const std::vector<int>& members) const {
    const indices first = indices_of(members[0]);
    return std::all_of(members.begin(), members.end(), [&](int m) {
      const indices at = indices_of(m);
      for (std::size_t a = 0; a < at.size(); ++a)
        if (is_cut(a) && at[a] != first[a]) return false;
      return true;
    });
  }

  /// A number for each communicator. Communicators with the same number differ by a shift along axes that are
  /// listed in part.
  std::vector<int> kinds_of_communicators() const {
    std::map<std::pair<std::vector<int>, std::vector<int>>, int> numbers;
    std::vector<int> kinds;
    for (const communicator& g : d_.communicators) {
      std::vector<int> members = members_of(g);
      for (int& m : members) m = base_of(m, g.along);
      const int next = static_cast<int>(numbers.size());
      kinds.push_back(numbers.try_emplace({g.along, std::move(members)}, next).first->second);
    }
    return kinds;
  }

  /// Checks that a rank has the communicators of the rank that it is a shift of, shifted as the rank is.
  void check_shift(int rank, const std::vector<int>& kinds) const {
    const listed_rank& w = d_.ranks[static_cast<std::size_t>(rank)];
    const int base = base_of(w.number, {});
    const auto found = std::partition_point(d_.ranks.begin(), d_.ranks.end(),
                                            [&](const listed_rank& other) { return other.number < base; });
    const auto is_like = [&](int own, int of_base) {
      return kinds[static_cast<std::size_t>(own)] == kinds[static_cast<std::size_t>(of_base)];
    };
    if (!std::equal(w.communicators.begin(), w.communicators.end(), found->communicators.begin(),
                    found->communicators.end(), is_like))
      refuse(
          "RC7260: certificate, rank {}: the communicators of rank {} of the world differ from those of rank "
          "{}, which represents it",
          rank, w.number, base);
  }

  /// The rank that a rank is a shift of: it has index 0 along each axis that is listed in part, except along
  /// the axes in `line`.
  int base_of(int number, const std::vector<int>& line) const {
    indices at = indices_of(number);
    for (std::size_t a = 0; a < at.size(); ++a)
      if (is_cut(a) && std::find(line.begin(), line.end(), static_cast<int>(a)) == line.end()) at[a] = 0;
    return number_at(at);
  }

  const step& d_;
};

}  // namespace

void check_represented(const step& d) {
  if (!d.mesh.empty()) return world_checker(d).check();
  for (const communicator& g : d.communicators)
    if (!g.along.empty())
      refuse(
          "RC7261: certificate: communicator \"{}\" leaves out members along axis {}, but the step has all "
          "ranks",
          g.name, g.along[0]);
}

}  // namespace rankc::codegen::verifying
