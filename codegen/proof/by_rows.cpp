// SPDX-License-Identifier: Apache-2.0
// Collectives that go by rows: with a product, at once, in parts. A part of the one is touched while any part of the other is,
// so that what the later of the two writes lies apart from all that the earlier touches.
#include "passes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

namespace rankc::codegen::proof {

namespace {

/// What is wrong with a collective and the op that it goes with; empty: nothing.
std::string fault_of_pair(const op& earlier, const op& later, bool gathers) {
  const op &collective = gathers ? earlier : later, &product = gathers ? later : earlier;
  if (collective.does != (gathers ? collective_kind::all_gather : collective_kind::reduce_scatter))
    return "goes by rows; an all_gather does, or a reduce_scatter";
  if (product.kind != op_kind::compute || product.stream != collective.stream)
    return fmt::format("goes by rows with \"{}\", which is no kernel on its stream", product.name);
  const auto is_result = [&](const access& r) { return !earlier.writes.empty() && r.value == earlier.writes[0].value; };
  if (std::none_of(later.reads.begin(), later.reads.end(), is_result))
    return fmt::format("goes by rows with \"{}\", and the one takes nothing of the other", product.name);
  for (const access& w : later.writes)
    for (const auto* touched : {&earlier.reads, &earlier.writes})
      for (const access& a : *touched)
        if (w.begin < a.end && a.begin < w.end)
          return fmt::format("goes by rows, and \"{}\" writes bytes {}..{} while \"{}\" touches {}..{}", later.name, w.begin, w.end, earlier.name,
                             a.begin, a.end);
  return "";
}

}  // namespace

void check_by_rows(const program& p, findings& wrong) {
  for (std::size_t r = 0; r < p.ranks.size(); ++r) {
    const auto& ops = p.ranks[r].ops;
    std::size_t taken = 0;         // ops up to here are of pairs before
    std::unordered_set<int> gone;  // values that were dealt out
    for (std::size_t i = 1; i < ops.size() && !wrong.full(); ++i) {
      for (const access& a : ops[i].reads)
        if (gone.count(a.value))
          wrong.add(fmt::format("rank {}: \"{}\" reads what was dealt out by rows, and its bytes were taken for what arrived", r, ops[i].name));
      if (!ops[i].by_rows || i + 1 == ops.size()) continue;
      const bool gathers = ops[i].does == collective_kind::all_gather;
      const std::size_t first = gathers ? i : i - 1;
      const std::string fault = first < taken ? "goes by rows with an op that goes with another" : fault_of_pair(ops[first], ops[first + 1], gathers);
      taken = first + 2;
      if (!gathers)
        for (const access& a : ops[i].reads) gone.insert(a.value);
      if (!fault.empty()) wrong.add(fmt::format("rank {}: \"{}\" {}", r, ops[i].name, fault));
    }
  }
}

}  // namespace rankc::codegen::proof
