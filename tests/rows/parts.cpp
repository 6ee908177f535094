// SPDX-License-Identifier: Apache-2.0
#include "parts.hpp"

#include <random>

namespace rankc::test::rows {

namespace {

/// Whether a cut contains an index of a dim, both as a unit and within the unit.
bool is_inside(const extent& e, int index, const cut& c) {
  const auto inside = [&](char letter, int i) {
    const auto at = c.find(letter);
    return at == c.end() || (i >= at->second.begin && i < at->second.end);
  };
  return inside(e.letter, index / e.unit) && inside(e.unit_letter, index % e.unit);
}

/// The indices of a port's elements inside a cut, in order.
std::vector<std::size_t> elements(const row& r, std::size_t port, const setting& s, const cut& c) {
  std::vector<std::size_t> left{0};
  for (const extent& e : shape(r, port, s)) {
    std::vector<std::size_t> next;
    for (const std::size_t before : left)
      for (int i = 0; i < e.elements(); ++i)
        if (is_inside(e, i, c))
          next.push_back(before * static_cast<std::size_t>(e.elements()) + static_cast<std::size_t>(i));
    left = std::move(next);
  }
  return left;
}

}  // namespace

setting part(const row& r, const setting& s, const cut& c) {
  setting made = s;
  for (const auto& [letter, i] : c) {
    made.size[letter] = i.size();
    if (letter == first_letter(r)) made.first += i.begin;
  }
  return made;
}

values part(const row& r, std::size_t port, const setting& s, const values& v, const cut& c) {
  values made;
  for (const std::size_t i : elements(r, port, s, c)) made.push_back(v[i]);
  return made;
}

operands part(const row& r, const setting& s, const operands& o, const cut& c) {
  operands made;
  for (std::size_t p = 0; p < o.size(); ++p) made.push_back(part(r, p, s, o[p], c));
  return made;
}

void gather(const row& r, std::size_t port, const setting& s, values& whole, const values& of_part,
            const cut& c, const std::function<double(double, double)>& combine) {
  std::size_t next = 0;
  for (const std::size_t i : elements(r, port, s, c)) whole[i] = combine(whole[i], of_part.at(next++));
}

std::vector<interval> random_parts(int size, int step, unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<interval> parts;
  for (int begin = 0; begin < size;) {
    const int steps =
        1 + static_cast<int>(generator() % static_cast<unsigned>(std::max(1, size / (2 * step))));
    const int end = std::min(size, begin + steps * step);
    parts.push_back({begin, end});
    begin = end;
  }
  return parts;
}

}  // namespace rankc::test::rows
