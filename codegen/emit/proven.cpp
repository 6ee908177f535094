// SPDX-License-Identifier: Apache-2.0
// The hashes of the proven calls as a table. A program compares its own calls with it when it starts.
#include <fmt/format.h>

#include <rankc/lowering/parameters.hpp>
#include <rankc/runtime/hashed_call.hpp>
#include <rankc/templates.hpp>
#include <rankc/version.hpp>

#include "emit.hpp"

namespace rankc::codegen {

namespace {

static_assert(runtime::elements_apart == rankc::lowering::element_alignment);

/// The most entries of a step. In a step with more calls, an entry stands for several calls.
constexpr std::size_t most_entries = 4096;
constexpr std::size_t entries_a_line = 24;

std::string entries(const step_hash& f, std::size_t every) {
  std::string out;
  std::size_t made = 0;
  for (std::size_t call = every; call <= f.after.size(); call += every) {
    if (made++ % entries_a_line == 0) out += made == 1 ? "     \"" : "\"\n     \"";
    for (int shift = 12; shift >= 0; shift -= 4)
      out += "0123456789abcdef"[runtime::short_hash(f.after[call - 1]) >> shift & 0xf];
  }
  return made == 0 ? "     \"\"" : out + "\"";
}

std::string row(const step_hash& f) {
  const std::size_t calls = f.after.size(), every = calls / most_entries + 1;
  return fmt::format(
      "    {{.pp = {}, .trains = {}, .rank = {}, .calls = {}, .hash = {:#018x}, .every = {}, .after "
      "=\n{}}},\n",
      f.alike, f.trains, f.rank, calls, f.hash, every, entries(f, every));
}

}  // namespace

std::string emit_proven(const lowered& l, const std::vector<step_hash>& hashes) {
  std::string rows;
  for (const step_hash& f : hashes) rows += row(f);
  return fill(templates::program_proven_hpp, {{"version", version},
                                              {"plan", std::string(l.plan->name)},
                                              {"plan_id", identifier(l.plan->name)},
                                              {"rows", rows}});
}

}  // namespace rankc::codegen
