// SPDX-License-Identifier: Apache-2.0
#include "judge.hpp"

#include "machine.hpp"
#include "mutants.hpp"

#include <proof/mutations.hpp>

#include <rankc/codegen/prove.hpp>

#include <cstdio>
#include <stdexcept>

namespace field {

namespace {

/// An eighth of the draws is of the kinds that the proof is tested with. In half of all, the program says nothing of what its
/// sums are to be, so that nothing but its ops tells.
fault draw_fault(rankc::codegen::program& p, std::mt19937& random) {
  fault f;
  if (random() % 8) {
    f = make_fault(p, static_cast<int>(random() % static_cast<unsigned>(count_faults())), random);
  } else {
    const rankc::codegen::testing::mutation m = rankc::codegen::testing::mutate(p, random);
    f = {m.kind.empty() ? "" : "order: " + m.kind, m.text};
  }
  if (random() % 2) return f;
  for (rankc::codegen::rank_program& r : p.ranks) r.sums.clear();
  f.text += ", sums unsaid";
  return f;
}

void add_to(tally& sum, const tally& one) {
  sum.mutants += one.mutants, sum.different += one.different, sum.no_program += one.no_program;
  sum.proven += one.proven, sum.proven_wrong += one.proven_wrong;
  sum.accepted += one.accepted, sum.refused_equal += one.refused_equal;
}

/// A program with its model's own run.
struct judged {
  const subject& s;
  model_run model;
};

void judge(const judged& of, const rankc::codegen::program& mutant, const fault& f, const opinion& checker, unsigned seed, report& r) {
  const bool proven = rankc::codegen::prove(mutant).ok;
  const std::string reason = proven ? checker(mutant, of.s.model) : "refused by the proof of order";
  const outcome o = run_program(mutant, of.model, seed);
  const tally one{1, !o.equal, !o.is_program, proven, proven && !o.equal, reason.empty(), !reason.empty() && o.equal};
  add_to(r.total, one), add_to(r.by_kind[f.kind], one);
  const std::string text = f.kind + ": " + of.s.name + ": " + f.text + ": ";
  if (reason.empty() && !o.equal) r.false_accepts.push_back(text + o.difference);
  if (proven && !reason.empty() && o.equal) r.strict[f.kind].push_back(text + reason);
}

}  // namespace

report judge_mutants(const std::vector<subject>& subjects, const opinion& checker, int count, unsigned seed) {
  report r;
  std::vector<judged> all;
  for (const subject& s : subjects) {
    all.push_back({s, run_model(s.model)});
    if (const std::string why = checker(s.program, s.model); !why.empty()) throw std::runtime_error(s.name + " is refused: " + why);
    if (const outcome o = run_program(s.program, all.back().model); !o.equal) throw std::runtime_error(s.name + ": " + o.difference);
  }
  std::mt19937 random(seed);
  for (std::size_t next = 0; r.total.mutants < count; next = (next + 1) % all.size()) {
    rankc::codegen::program mutant = all[next].s.program;
    if (const fault f = draw_fault(mutant, random); !f.kind.empty()) judge(all[next], mutant, f, checker, random(), r);
  }
  return r;
}

std::string to_text(const report& r) {
  std::string text;
  const auto line = [&](const std::string& kind, const tally& t) {
    char buffer[200];
    std::snprintf(buffer, sizeof buffer, "%-32s %6d mutants %6d different (%6d no program) %6d proven (%6d different) %6d accepted %6d refused though equal\n",
                  kind.c_str(), t.mutants, t.different, t.no_program, t.proven, t.proven_wrong, t.accepted, t.refused_equal);
    text += buffer;
  };
  for (const auto& [kind, t] : r.by_kind) line(kind, t);
  line("all", r.total);
  return text;
}

}  // namespace field
