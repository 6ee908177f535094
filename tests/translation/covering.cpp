// SPDX-License-Identifier: Apache-2.0
#include "covering.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace translation {

using rankc::codegen::access;

namespace {

std::string words(const area& a) {
  if (a.is_whole()) return fmt::format("[{}, {})", a.begin, a.end());
  return fmt::format("{} x {} bytes from {}, {} apart", a.runs, a.run, a.begin, a.pitch);
}

std::string words(const access& a) { return fmt::format("[{}, {})", a.begin, a.end); }

/// The first few elements of a list as text.
template <class T>
std::string words(const std::vector<T>& list) {
  constexpr std::size_t most = 4;
  std::string out;
  for (std::size_t i = 0; i < std::min(list.size(), most); ++i) out += (i ? ", " : "") + words(list[i]);
  if (list.size() > most) out += fmt::format(" and {} more", list.size() - most);
  return out.empty() ? "nothing" : out;
}

/// Intervals in order; overlapping and adjacent ones are joined.
std::vector<interval> merged(std::vector<interval> list) {
  std::sort(list.begin(), list.end());
  std::vector<interval> out;
  for (const interval& i : list)
    if (!out.empty() && i.first <= out.back().second)
      out.back().second = std::max(out.back().second, i.second);
    else out.push_back(i);
  return out;
}

/// Whether an interval contains a byte of [begin, end).
bool meets(const std::vector<interval>& list, std::size_t begin, std::size_t end) {
  const auto after = std::lower_bound(list.begin(), list.end(), interval{end, 0});
  return begin < end && after != list.begin() && std::prev(after)->second > begin;
}

class matcher {
 public:
  explicit matcher(const std::vector<access>& proven) : proven_(proven), used_(proven.size()) {}

  bool take(const area& a) { return a.is_whole() ? tile(a.begin, a.end()) : take_columns(a); }
  bool all_are_used() const { return std::find(used_.begin(), used_.end(), false) == used_.end(); }

 private:
  /// Match accesses that are adjacent from `begin` to `end`.
  bool tile(std::size_t begin, std::size_t end) {
    if (begin == end) return true;
    bool found = false;
    for (std::size_t i = 0; i < proven_.size(); ++i)
      if (proven_[i].begin == begin && begin < proven_[i].end && proven_[i].end <= end &&
          tile(proven_[i].end, end))
        found = used_[i] = true;
    return found;
  }
  /// Match columns of one access, or of equal ones. They must not be columns of several different accesses.
  bool take_columns(const area& a) {
    const access* rows = nullptr;
    for (std::size_t i = 0; i < proven_.size(); ++i) {
      const access& p = proven_[i];
      if (p.begin > a.begin || p.end - p.begin != a.runs * a.pitch || a.begin - p.begin + a.run > a.pitch)
        continue;
      if (rows && rows->begin != p.begin) return false;
      rows = &p;
      used_[i] = true;
    }
    return rows;
  }

  const std::vector<access>& proven_;
  std::vector<bool> used_;
};

/// The first area that shares a byte with an earlier one; the list's end if there is none.
auto find_twice(const std::vector<area>& areas) {
  return std::find_if(areas.begin(), areas.end(), [&](const area& a) {
    return std::any_of(areas.data(), &a,
                       [&](const area& b) { return a.begin < b.end() && b.begin < a.end(); });
  });
}

/// Whether ranges of a region contain every access, and no other byte that an op touches.
bool hold(const std::vector<area>& areas, const std::vector<access>& proven,
          const std::vector<interval>& touched) {
  std::vector<interval> covered, accessed;
  for (const area& a : areas) covered.emplace_back(a.begin, a.end());
  for (const access& p : proven) accessed.emplace_back(p.begin, p.end);
  accessed = merged(std::move(accessed));
  for (const area& a : areas) {
    std::size_t at = a.begin;
    for (const auto& [begin, end] : accessed) {
      if (end <= at || begin >= a.end()) continue;
      if (begin > at && meets(touched, at, begin)) return false;
      at = std::max(at, end);
    }
    if (at < a.end() && meets(touched, at, a.end())) return false;
  }
  covered = merged(std::move(covered));
  return std::all_of(accessed.begin(), accessed.end(), [&](const interval& i) {
    return std::any_of(covered.begin(), covered.end(),
                       [&](const interval& c) { return c.first <= i.first && i.second <= c.second; });
  });
}

}  // namespace

std::vector<interval> all_touched(const rankc::codegen::rank_program& r) {
  std::vector<interval> list;
  for (const auto& o : r.ops)
    for (const auto* side : {&o.reads, &o.writes})
      for (const access& a : *side) list.emplace_back(a.begin, a.end);
  return merged(std::move(list));
}

std::string cover(const std::vector<area>& areas, const std::vector<access>& proven, bool has_padding,
                  const std::vector<interval>& touched) {
  if (const auto twice = find_twice(areas); has_padding && twice != areas.end())
    return words(*twice) + " twice, where each byte was proven once";
  matcher m(proven);
  const auto unproven = std::find_if(areas.begin(), areas.end(), [&](const area& a) { return !m.take(a); });
  if (unproven == areas.end() && m.all_are_used()) return "";
  if (has_padding && hold(areas, proven, touched)) return "";
  if (unproven != areas.end()) return fmt::format("{} where {} was proven", words(*unproven), words(proven));
  return fmt::format("{} where {} was proven", words(areas), words(proven));
}

}  // namespace translation
