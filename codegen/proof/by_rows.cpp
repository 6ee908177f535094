// SPDX-License-Identifier: Apache-2.0
// Collectives that go by rows: with a product, at once, in parts. A part of the one is touched while any part
// of the other is, so that what the later of the two writes lies apart from all that the earlier touches, and
// what runs meanwhile apart from all that the collective touches. The first of them waits for all; what is
// gathered has arrived when the product ends, not before.
#include "passes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <unordered_set>

namespace rankc::codegen::proof {

namespace {

/// Of what an op reads or writes, bytes that another op touches; empty: none.
std::string fault_of_bytes(const std::vector<access>& of, const std::string& name, const char* how,
                           const op& other) {
  for (const access& w : of)
    for (const auto* touched : {&other.reads, &other.writes})
      for (const access& a : *touched)
        if (w.begin < a.end && a.begin < w.end)
          return fmt::format("goes by rows, and \"{}\" {} bytes {}..{} while \"{}\" touches {}..{}", name,
                             how, w.begin, w.end, other.name, a.begin, a.end);
  return "";
}

/// What is wrong with a collective and the op that it goes with; empty: nothing.
std::string fault_of_pair(const op& earlier, const op& later, bool gathers) {
  const op &collective = gathers ? earlier : later, &product = gathers ? later : earlier;
  if (collective.does != (gathers ? collective_kind::all_gather : collective_kind::reduce_scatter))
    return "goes by rows; an all_gather does, or a reduce_scatter";
  if (product.kind != op_kind::compute || product.stream != collective.stream)
    return fmt::format("goes by rows with \"{}\", which is no kernel on its stream", product.name);
  const auto is_result = [&](const access& r) {
    return !earlier.writes.empty() && r.value == earlier.writes[0].value;
  };
  if (std::none_of(later.reads.begin(), later.reads.end(), is_result))
    return fmt::format("goes by rows with \"{}\", and the one takes nothing of the other", product.name);
  return fault_of_bytes(later.writes, later.name, "writes", earlier);
}

/// What is wrong with an op that runs meanwhile.
std::string fault_of_meanwhile(const op& meanwhile, const op& collective) {
  if (meanwhile.kind != op_kind::compute || meanwhile.stream != collective.stream)
    return fmt::format("goes by rows while \"{}\" runs, which is no kernel on its stream", meanwhile.name);
  const std::string fault = fault_of_bytes(meanwhile.reads, meanwhile.name, "reads", collective);
  return fault.empty() ? fault_of_bytes(meanwhile.writes, meanwhile.name, "writes", collective) : fault;
}

/// What is wrong with ops that go at once, from the earlier of a collective and its product to the later.
std::string fault_of_ops(std::span<const op> all, bool gathers) {
  std::string fault = fault_of_pair(all.front(), all.back(), gathers);
  for (const op& o : all.subspan(1, all.size() - 2))
    if (fault.empty()) fault = fault_of_meanwhile(o, gathers ? all.front() : all.back());
  for (const op& o : all.subspan(1))
    if (fault.empty() && !o.waits.empty())
      fault = fmt::format("goes by rows, and \"{}\" waits; the first of them does, \"{}\"", o.name,
                          all.front().name);
  return fault;
}

}  // namespace

void check_by_rows(const program& p, findings& wrong) {
  for (std::size_t r = 0; r < p.ranks.size(); ++r) {
    const auto& ops = p.ranks[r].ops;
    std::size_t taken = 0;              // ops up to here are of pairs before
    std::unordered_set<int> gone;       // values that were dealt out
    std::unordered_set<int> under_way;  // gathers, and what runs meanwhile
    for (std::size_t i = 1; i < ops.size() && !wrong.full(); ++i) {
      for (int w : ops[i].waits)
        if (under_way.count(w))
          wrong.add(
              fmt::format("rank {}: \"{}\" waits for \"{}\", while which rows are under way; it may wait for "
                          "their product",
                          r, ops[i].name, ops[static_cast<std::size_t>(w)].name));
      for (const access& a : ops[i].reads)
        if (gone.count(a.value))
          wrong.add(fmt::format(
              "rank {}: \"{}\" reads what was dealt out by rows, and its bytes were taken for what arrived",
              r, ops[i].name));
      if (ops[i].by_rows == 0) continue;
      const bool gathers = ops[i].does == collective_kind::all_gather;
      const auto by = static_cast<std::size_t>(ops[i].by_rows);
      if (by > 2 || (gathers ? i + by >= ops.size() : i < by)) {
        wrong.add(fmt::format("rank {}: \"{}\" goes by rows with an op {} from it; it is one of the next two",
                              r, ops[i].name, ops[i].by_rows));
        continue;
      }
      const std::size_t first = gathers ? i : i - by;
      const std::string fault = first < taken ? "goes by rows with an op that goes with another"
                                              : fault_of_ops(std::span(ops).subspan(first, by + 1), gathers);
      taken = first + by + 1;
      for (std::size_t k = first; gathers && k + 1 < taken; ++k) under_way.insert(static_cast<int>(k));
      if (!gathers)
        for (const access& a : ops[i].reads) gone.insert(a.value);
      if (!fault.empty()) wrong.add(fmt::format("rank {}: \"{}\" {}", r, ops[i].name, fault));
    }
  }
}

}  // namespace rankc::codegen::proof
