// SPDX-License-Identifier: Apache-2.0
#include "machine.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace rankc::test::rows {

namespace {

/// The numbers below `count` in random order.
values shuffled(std::size_t count, std::mt19937& generator) {
  values all(count);
  for (std::size_t i = 0; i < count; ++i) all[i] = static_cast<double>(i);
  for (std::size_t i = count; i > 1; --i) std::swap(all[i - 1], all[generator() % i]);
  return all;
}

/// Where each token's document begins in its sequence: at its start, and after random tokens.
values random_starts(std::size_t count, int seq, std::mt19937& generator) {
  values all(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t position = i % static_cast<std::size_t>(seq);
    if (position == 0) continue;
    all[i] = generator() % 3 == 0 ? static_cast<double>(position) : all[i - 1];
  }
  return all;
}

/// A random choice of distinct experts, if there are enough; or places of slots; or where the slots of
/// experts or segments begin and end.
values random_order(const row& r, std::size_t port, const setting& s, std::mt19937& generator) {
  const std::string& name = r.is->ports[port].name;
  const auto slots = static_cast<std::size_t>(s.size.at('t')) * static_cast<std::size_t>(s.size.at('l'));
  if (r.is->counts) {  // places, some of which are missing
    values v(static_cast<std::size_t>(s.size.at('t')) * static_cast<std::size_t>(s.size.at('i')));
    for (double& place : v) place = generator() % 3 ? 1 : -1;
    return v;
  }
  if (name == "places") return shuffled(slots, generator);
  values v;
  if (name == "offsets") {
    const int segments = s.size.at(r.is->ports[port].axes.back().of);
    v.assign(2 * static_cast<std::size_t>(segments), 0.0);
    for (int e = 1; e < segments; ++e)
      v[static_cast<std::size_t>(e)] = static_cast<double>(generator() % (slots + 1));
    std::sort(v.begin(), v.begin() + segments);
    std::copy(v.begin() + 1, v.begin() + segments, v.begin() + segments);
    v.back() = static_cast<double>(slots);
    return v;
  }
  const int picks = s.size.at(r.is->ports[port].axes.back().of),
            experts = s.size.at(r.is->arranges || r.is->grouped ? 'r' : 'e');
  for (int t = 0; t < s.size.at('t'); ++t) {
    const values order = shuffled(static_cast<std::size_t>(experts), generator);
    for (int k = 0; k < picks; ++k) v.push_back(order[static_cast<std::size_t>(k % experts)]);
  }
  return v;
}

}  // namespace

values random_port(const machine& on, const row& r, std::size_t port, const setting& s, unsigned seed) {
  std::mt19937 generator(seed * 97u + static_cast<unsigned>(port));
  values v(count(r, port, s));
  const auto below = static_cast<unsigned>(s.first + s.size.at('v') + 3);
  const bool reads_labels = r.op->find("count") >= 0;
  const bool positive =
      r.is->ports[port].name == "sums" || r.is->ports[port].name == "whole" ||
      r.is->ports[port].name == "count" || (r.is->ports[port].name == "weights" && reads_labels) ||
      ((r.op == &ops::normalize || r.op == &ops::normalize_grad) && r.is->ports[port].name == "x");
  if (const std::string& name = r.is->ports[port].name;
      name == "chosen" || name == "places" || name == "offsets")
    return random_order(r, port, s, generator);
  const double first = reads_labels ? -3 : 0;  // indices: a negative label is ignored
  if (r.is->ports[port].name == "starts") return random_starts(v.size(), s.seq(), generator);
  for (double& x : v) {
    const double unit = static_cast<double>(generator()) / 4294967296.0;  // [0, 1)
    if (r.of(port).holds == element::index) x = first + static_cast<double>(generator() % below);
    else x = positive ? 0.5 + unit : 2 * unit - 1;
  }
  return on.rounded(r, port, v);
}

operands random_operands(const machine& on, const row& r, const setting& s, unsigned seed) {
  operands made;
  for (std::size_t p = 0; p < r.ports.size(); ++p) made.push_back(random_port(on, r, p, s, seed));
  return made;
}

double largest(const values& v) {
  double most = 0;
  for (const double x : v)
    if (!std::isinf(x))
      most = std::max(most, std::abs(x));  // scores of groups that are not kept are minus infinity
  return most;
}

double deviation(const values& got, const values& want, double scale) {
  if (got.size() != want.size()) return std::numeric_limits<double>::infinity();
  double most = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double off = got[i] == want[i] ? 0 : std::abs(got[i] - want[i]);
    most = off <= most ? most : off;  // NaN stays NaN
    if (std::isnan(off)) return std::numeric_limits<double>::infinity();
  }
  return most / std::max({1.0, scale, largest(want)});
}

}  // namespace rankc::test::rows
