// SPDX-License-Identifier: Apache-2.0
// The candidates of a search, against those of the Python original.
#include <doctest/doctest.h>

#include <algorithm>

#include "oracle.hpp"

using namespace oracle;

namespace {

/// A candidate of this strategy, in the form that the Python writes.
std::vector<int> tuple_of(const problem& q, const plan& p) {
  if (q.by == strategy::tp1d) return {p.dp, p.tp1, p.pp, p.mbs, p.nv_tp1, p.nv_dp, p.nv_pp};
  std::vector<int> tuple{p.dp, p.tp1, p.tp2, p.pp, p.mbs};
  if (q.by == strategy::tp2d) tuple.push_back(p.nb);
  tuple.insert(tuple.end(), {p.nv_tp1, p.nv_tp2, p.nv_dp, p.nv_pp});
  return tuple;
}

std::vector<std::vector<int>> tuples_in(std::string_view text) {
  std::vector<std::vector<int>> tuples;
  while (!text.empty()) {
    std::string_view tuple = text.substr(0, text.find(';'));
    text.remove_prefix(std::min(text.size(), tuple.size() + 1));
    tuples.emplace_back();
    while (!tuple.empty()) {
      const std::string_view number = tuple.substr(0, tuple.find(' '));
      tuples.back().push_back(fields::parsed<int>(number));
      tuple.remove_prefix(std::min(tuple.size(), number.size() + 1));
    }
  }
  return tuples;
}

}  // namespace

TEST_CASE("searches look at the Python's candidates") {
  int lines = 0, listed = 0;
  for (const std::string& line : lines_of("candidates.csv", 1)) {
    CAPTURE(line.substr(0, 60));
    fields f(line);
    const transformer model = model_of(f.word());
    const strategy by = strategy_of(f.word());
    // Candidates do not depend on the GPU's other numbers.
    const gpu_system gpu = b200.with_domain(f.integer());
    const problem q{{model, gpu}, by, f.integer(), f.integer()};
    std::vector<std::vector<int>> ours;
    visit_plans(q, [&](const placement& p, int mbs, int nb, const step_estimate&) {
      ours.push_back(tuple_of(q, p.with(mbs, nb)));
    });
    CHECK(static_cast<int>(ours.size()) == f.integer());
    ++lines;
    std::vector<std::vector<int>> theirs = tuples_in(f.word());
    if (theirs.empty()) continue;
    std::sort(ours.begin(), ours.end());
    std::sort(theirs.begin(), theirs.end());
    CHECK(ours == theirs);
    listed += static_cast<int>(theirs.size());
  }
  CHECK(lines == 166);
  CHECK(listed > 1000);
}
