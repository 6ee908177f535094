// SPDX-License-Identifier: Apache-2.0
#include "find_harm.hpp"
#include "mutations.hpp"

#include <rankc/codegen/certificate.hpp>
#include <rankc/codegen/prove.hpp>
#include <rankc/codegen/verify.hpp>

#include <cstdio>

namespace rankc::codegen::testing {

namespace {

void count(mutation_tally& t, bool accepted, bool harm) {
  ++t.mutants;
  if (accepted) ++t.accepted;
  else ++(harm ? t.harmful : t.harmless);
}

template <class List>
void append(List& to, const List& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

void judge(const program& p, const mutation& m, unsigned seed, mutation_report& report) {
  const auto verdict = prove(p);
  const auto refusal = verify(certificate(p, verdict));
  const auto what = m.kind + " " + m.text;
  if (verdict.ok != refusal.empty())
    report.disagreements.push_back(what + ": prove: " + (verdict.ok ? "ok" : verdict.reasons[0]) +
                                   "; verify: " + (refusal.empty() ? "ok" : refusal));
  const auto harm = find_harm(p, seed);
  if (verdict.ok && !harm.empty()) report.false_accepts.push_back(what + ": " + harm);
  if (!verdict.ok && harm.empty()) report.strict.push_back(what + ": " + verdict.reasons[0]);
  count(report.total, verdict.ok, !harm.empty());
  count(report.by_kind[m.kind], verdict.ok, !harm.empty());
}

mutation_report run_mutations(const program& p, int count, unsigned seed) {
  mutation_report report;
  std::mt19937 random(seed);
  while (report.total.mutants < count) {
    program mutant = p;
    if (const auto m = mutate(mutant, random); !m.kind.empty()) judge(mutant, m, seed, report);
  }
  return report;
}

mutation_report& operator+=(mutation_report& sum, const mutation_report& one) {
  const auto add = [](mutation_tally& to, const mutation_tally& t) {
    to.mutants += t.mutants;
    to.accepted += t.accepted;
    to.harmful += t.harmful;
    to.harmless += t.harmless;
  };
  add(sum.total, one.total);
  for (const auto& [kind, tally] : one.by_kind) add(sum.by_kind[kind], tally);
  append(sum.false_accepts, one.false_accepts);
  append(sum.disagreements, one.disagreements);
  append(sum.strict, one.strict);
  return sum;
}

std::string to_text(const mutation_report& report) {
  std::string text;
  const auto line = [&](const char* kind, const mutation_tally& t) {
    char buffer[128];
    std::snprintf(buffer, sizeof buffer, "%-22s %6d mutants %6d accepted %6d harmful %6d harmless\n", kind,
                  t.mutants, t.accepted, t.harmful, t.harmless);
    text += buffer;
  };
  for (const auto& [kind, tally] : report.by_kind) line(kind.c_str(), tally);
  line("all", report.total);
  return text;
}

}  // namespace rankc::codegen::testing
