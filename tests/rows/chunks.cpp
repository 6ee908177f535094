// SPDX-License-Identifier: Apache-2.0
// Compares kernels on parts of axes with the kernel on whole axes.
#include "laws.hpp"
#include "parts.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace rankc::test::rows {

namespace {

enum class joining { place, sum, maximum };

const equation& equation_of(const row& r, std::size_t result) {
  return *std::find_if(r.is->equations.begin(), r.is->equations.end(), [&](const equation& e) {
    return std::find(e.results.begin(), e.results.end(), static_cast<int>(result)) != e.results.end();
  });
}

bool has_axis(const row& r, std::size_t port, char letter) {
  const auto& axes = r.is->ports[port].axes;
  return std::any_of(axes.begin(), axes.end(),
                     [&](const auto& a) { return a.of == letter || a.unit == letter; });
}

/// How the results on parts of an axis are joined. If a row is defined by other rows, the facts do not say,
/// and the results are summed.
joining how(const row& r, std::size_t result, char letter) {
  const equation& e = equation_of(r, result);
  const bool is_of_sequences = r.is->pooled && has_axis(r, result, 'm');
  if (has_axis(r, result, letter) || is_of_sequences || (r.is->groups && has_axis(r, result, 'h')))
    return joining::place;
  if (e.is != equation::kind::call && e.over.find(letter) == std::string::npos)
    throw std::logic_error(std::string(r.op->name) + ": its facts do not say how " +
                           r.is->ports[result].name + " is made of parts of axis " + letter);
  return e.how == codegen::algebra::joining::maximum ? joining::maximum : joining::sum;
}

/// The joined results on parts, and the largest number in them.
struct joined {
  operands results;
  double scale = 0;
};
joined run_parts(machine& on, const row& r, const setting& s, const operands& o, char letter,
                 const std::vector<cut>& cuts) {
  joined all;
  for (std::size_t p = 0; p < r.results(); ++p)
    all.results.emplace_back(count(r, p, s), how(r, p, letter) == joining::maximum ? -HUGE_VAL : 0.0);
  for (const cut& c : cuts) {
    const operands got = on.run(r, part(r, s, c), part(r, s, o, c));
    for (std::size_t p = 0; p < r.results(); ++p) {
      all.scale = std::max(all.scale, largest(got[p]));
      gather(r, p, s, all.results[p], got[p], c, [&](double whole, double of_part) {
        const joining j = how(r, p, letter);
        if (j == joining::place) return of_part;
        return j == joining::sum ? whole + of_part : std::max(whole, of_part);
      });
    }
  }
  return all;
}

double worst(const row& r, const operands& got, const operands& want, double scale) {
  double most = 0;
  for (std::size_t p = 0; p < r.results(); ++p) most = std::max(most, deviation(got[p], want[p], scale));
  return most;
}

/// The parts of an axis, with the axes that must be cut along with it: a key head's query heads, for example.
std::vector<cut> cuts_of(const row& r, const setting& s, char letter, unsigned seed) {
  // If a row does not take `first` for tokens, their positions follow from their index.
  const bool by_sequence = letter == 't' && (r.is->sequences || r.is->pooled || r.is->shares ||
                                             (r.is->positions && first_letter(r) != 't'));
  std::vector<cut> cuts;
  for (const interval& i : random_parts(s.size.at(letter), by_sequence ? s.seq() : 1, seed)) {
    cut c{{letter, i}};
    if (r.is->groups && letter == 'k') {
      const int group = s.size.at('h') / s.size.at('k');
      c['h'] = {i.begin * group, i.end * group};
    }
    if (r.is->documents && r.is->sequences && letter == 't') c['n'] = i;
    if (r.is->pooled && letter == 't') c['m'] = {i.begin / s.seq(), i.end / s.seq()};
    cuts.push_back(c);
  }
  return cuts;
}

/// The axes that must not be cut: those that the facts say, the positions that a table lists, and the
/// elements of a head.
std::set<char> whole_axes(const row& r) {
  std::set<char> all(r.is->whole.begin(), r.is->whole.end());
  if (r.is->listed) all.insert('s');
  for (const auto& p : r.is->ports)
    for (const auto& a : p.axes)
      if (a.unit) all.insert(a.unit);
  return all;
}
std::set<char> axes(const row& r) {
  std::set<char> all;
  for (const auto& p : r.is->ports)
    for (const auto& a : p.axes)
      if (a.of >= 'a') all.insert(a.of);
  return all;
}

/// The two halves of an axis. For rows on two parts of features, both parts and the whole are halved.
std::vector<cut> halves(const row& r, const setting& s, char letter) {
  std::vector<cut> cuts(2);
  for (const char c : r.is->parts ? std::string("lr") : std::string(1, letter)) {
    // Heads have an even number of elements.
    const int n = s.size.at(c), middle = letter == 'd' ? n / 4 * 2 : n / 2;
    cuts[0][c] = {0, middle};
    cuts[1][c] = {middle, n};
  }
  if (r.is->parts)
    for (cut& c : cuts) c['w'] = {c['l'].begin + c['r'].begin, c['l'].end + c['r'].end};
  return cuts;
}

}  // namespace

void check_parts(machine& on, const row& r, const setting& s) {
  const operands o = random_operands(on, r, s, 1);
  const operands want = on.run(r, s, o);
  const std::set<char> whole = whole_axes(r);
  for (const char letter : axes(r)) {
    if (whole.count(letter) || letter == 'n' || (r.is->groups && letter == 'h') ||
        (has_slots(r) && letter == 't') || ((r.is->grouped || r.is->pooled) && letter == 'm'))
      continue;
    if ((r.is->segments || r.is->owns) && (letter == 'r' || letter == 'g'))
      continue;  // check_slots tests parts of the experts
    const joined got = run_parts(on, r, s, o, letter, cuts_of(r, s, letter, 5));
    INFO(on.name() << " " << r.op->name << " over parts of axis " << std::string(1, letter));
    CHECK(worst(r, got.results, want, got.scale) <= on.tolerance());
  }
}

std::set<std::string> needs_without_effect(machine& on, const row& r, const setting& s) {
  const operands o = random_operands(on, r, s, 2);
  const operands want = on.run(r, s, o);
  std::set<std::string> without;
  const auto expect_other = [&](const std::string& need, const operands& got) {
    if (worst(r, got, want, 1) < 1e-3) without.insert(std::string(r.op->name) + " " + need);
  };
  for (const char letter : whole_axes(r)) {
    if (r.is->documents && letter == 's') continue;  // starts of longer sequences are outside the table
    const std::vector<cut> cuts = halves(r, s, letter);
    operands got = want;  // results without the axis are the last part's
    for (const cut& c : cuts) {
      const operands of_part = on.run(r, part(r, s, c), part(r, s, o, c));
      for (std::size_t p = 0; p < r.results(); ++p)
        gather(r, p, s, got[p], of_part[p], c, [](double, double x) { return x; });
    }
    expect_other(std::string("whole(") + letter + ")", got);
  }
  if (first_letter(r)) {
    setting moved = s;
    moved.first = 1;
    expect_other("first", on.run(r, moved, o));
  }
  const auto cut_at = [&](char letter, int middle, std::map<char, int> with = {}) {
    const int n = s.size.at(letter);
    std::vector<cut> cuts{{{letter, {0, middle}}}, {{letter, {middle, n}}}};
    for (const auto& [other, at] : with) {
      cuts[0][other] = {0, at};
      cuts[1][other] = {at, s.size.at(other)};
    }
    return run_parts(on, r, s, o, letter, cuts).results;
  };
  if (r.is->positions && !first_letter(r)) expect_other("positions", cut_at('t', s.seq() + 1));
  if (r.is->sequences) {
    // Each token is a sequence by itself, without the tokens before it.
    setting short_ones = s;
    short_ones.size['s'] = 1;
    expect_other("sequences", on.run(r, short_ones, o));
  }
  if (r.is->groups) expect_other("groups", cut_at('k', 1, {{'h', 1}}));
  return without;
}

}  // namespace rankc::test::rows
