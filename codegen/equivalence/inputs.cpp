// SPDX-License-Identifier: Apache-2.0
#include "inputs.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "claims.hpp"
#include "refusal.hpp"

namespace rankc::codegen::algebra {

namespace {

/// The bytes and the rows of one microbatch of an input.
struct placed_input {
  const access* at;
  const codegen::holding* what;
  std::int64_t first_row() const { return what->box.empty() ? 0 : what->box[0].first; }
};

using input_name = std::pair<holding_kind, std::string>;
using placed_inputs = std::map<input_name, std::vector<placed_input>>;

/// The inputs of a rank, each in the order of its bytes.
placed_inputs inputs_of(const rank_program& p) {
  placed_inputs all;
  for (const op& o : p.ops)
    for (std::size_t i = 0; o.kind == op_kind::begin && i < o.holds.size(); ++i)
      if (const codegen::holding& h = o.holds[i]; is_input(h.kind))
        all[{h.kind, h.name}].push_back({&o.writes.at(i), &h});
  for (auto& [input, placed] : all)
    std::sort(placed.begin(), placed.end(),
              [](const placed_input& x, const placed_input& y) { return x.at->begin < y.at->begin; });
  return all;
}

/// Checks two neighbouring microbatches. An input that all microbatches share has the same rows in each.
void check_neighbours(int rank, const placed_input& before, const placed_input& after) {
  const bool rises = before.first_row() < after.first_row() || before.what->box == after.what->box;
  if (rises && before.at->end == after.at->begin) return;
  throw refusal(
      "RC7795: rank {}: {} from row {} on begin at byte {}, and from row {} on at byte {}; expected "
      "microbatches one behind the other, in the order of their rows",
      rank, name_of(*after.what), before.first_row(), before.at->begin, after.first_row(), after.at->begin);
}

}  // namespace

void check_inputs(const program& p) {
  std::map<std::pair<int, input_name>, std::set<std::int64_t>> first_rows;  // by program and input
  for (std::size_t r = 0; r < p.ranks.size(); ++r) {
    const int number = p.number_of(static_cast<int>(r));
    for (const auto& [input, placed] : inputs_of(p.ranks[r])) {
      for (std::size_t i = 1; i < placed.size(); ++i) check_neighbours(number, placed[i - 1], placed[i]);
      std::set<std::int64_t>& known = first_rows[{p.ranks[r].alike, input}];
      const std::int64_t row = placed.front().first_row();
      if (known.insert(row).second && row != *known.rbegin())
        throw refusal(
            "RC7797: rank {} begins with {} from row {} on, and an earlier rank, which runs the same "
            "program, from row {} on; expected the rows of an earlier rank, or later rows",
            number, name_of(*placed.front().what), row, *known.rbegin());
    }
  }
}

}  // namespace rankc::codegen::algebra
