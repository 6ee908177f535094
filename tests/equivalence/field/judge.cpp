// SPDX-License-Identifier: Apache-2.0
#include "judge.hpp"

#include "execution.hpp"
#include "mutants.hpp"

#include <proof/mutations.hpp>

#include <rankc/codegen/prove.hpp>

#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>
#include <utility>

namespace field {

namespace {

using execution::outcome;

/// A program, the model that it is held to, and that model's own runs.
struct judged {
  std::string name;
  rankc::codegen::program program;
  rankc::codegen::specification model;
  std::shared_ptr<const execution::model> exact, f64;
  bool is_model = true;  // that can be run

  void run_model() {
    exact = execution::over_field(model);
    f64 = execution::in_f64(model);
  }
};

/// An eighth of the draws is of the kinds that the proof is tested with, an eighth of the model.
fault draw_one_fault(judged& j, std::mt19937& random) {
  fault f;
  if (const unsigned of = random() % 8; of == 0) {
    const rankc::codegen::testing::mutation m = rankc::codegen::testing::mutate(j.program, random);
    f = {m.kind.empty() ? "" : "order: " + m.kind, m.text};
  } else if (of == 1) {
    f = make_fault(j.model, random);
    try {
      if (!f.kind.empty()) j.run_model();
    } catch (const std::runtime_error&) {
      j.is_model = false;
    }
  } else {
    f = make_fault(j.program, static_cast<int>(random() % static_cast<unsigned>(count_faults())), random);
  }
  return f;
}

/// In a third of the draws there are two faults, which may hide each other.
fault draw_fault(judged& j, std::mt19937& random) {
  fault first = draw_one_fault(j, random);
  if (first.kind.empty() || random() % 3 > 0) return first;
  const fault second = draw_one_fault(j, random);
  if (second.kind.empty()) return first;
  return {"two faults", first.kind + ": " + first.text + ", and " + second.kind + ": " + second.text};
}

void add_to(tally& sum, const tally& one) {
  sum.mutants += one.mutants;
  sum.different += one.different;
  sum.no_program += one.no_program;
  sum.proven += one.proven;
  sum.proven_wrong += one.proven_wrong;
  sum.accepted += one.accepted;
  sum.refused_equal += one.refused_equal;
  sum.different_f64 += one.different_f64;
  sum.field_only += one.field_only;
  sum.f64_only += one.f64_only;
}

/// What a checker says; that it came to no end is a refusal, and noted.
std::string ask(const opinion& checker, const judged& j, const std::string& text, report& r) {
  try {
    return checker(j.program, j.model);
  } catch (const std::exception& e) {
    r.failures.push_back(text + e.what());
    return e.what();
  }
}

void judge(const judged& j, const fault& f, const opinion& checker, unsigned seed, report& r) {
  const std::string text = f.kind + ": " + f.text + ": ";
  const bool proven = rankc::codegen::prove(j.program).ok;
  const std::string reason = proven ? ask(checker, j, text, r) : "refused by the proof of order";
  const outcome no_model{false, "the model does not run", false};
  const outcome o = j.is_model ? j.exact->run(j.program, seed) : no_model;
  const outcome in_f64 = j.is_model ? j.f64->run(j.program, seed) : no_model;
  const tally one{1,
                  !o.equal,
                  !o.is_program,
                  proven,
                  proven && !o.equal,
                  reason.empty(),
                  !reason.empty() && o.equal,
                  !in_f64.equal,
                  !o.equal && in_f64.equal,
                  o.equal && !in_f64.equal};
  add_to(r.total, one);
  add_to(r.by_kind[f.kind], one);
  if (reason.empty() && !o.equal) r.false_accepts.push_back(text + o.difference);
  if (reason.empty() && !in_f64.equal) r.false_accepts.push_back(text + "in f64 " + in_f64.difference);
  if (one.field_only) r.field_only[f.kind].push_back(text + o.difference);
  if (one.f64_only) r.f64_only[f.kind].push_back(text + in_f64.difference);
  if (proven && !reason.empty() && o.equal) r.strict[f.kind].push_back(text + reason);
}

}  // namespace

report judge_mutants(const std::vector<subject>& subjects, const opinion& checker, int count, unsigned seed) {
  report r;
  std::vector<judged> all;
  for (const subject& s : subjects) {
    judged j{s.name, s.program, s.model, {}, {}};
    j.run_model();
    std::string why = checker(s.program, s.model);
    if (why.empty()) why = j.exact->run(s.program).difference;
    if (why.empty()) why = j.f64->run(s.program).difference;
    if (why.empty()) all.push_back(std::move(j));
    else r.wrong_programs.push_back(s.name + ": " + why);
  }
  std::mt19937 random(seed);
  for (std::size_t next = 0; !all.empty() && r.total.mutants < count; next = (next + 1) % all.size()) {
    judged mutant = all[next];
    fault f = draw_fault(mutant, random);
    if (f.kind.empty()) continue;
    f.text = mutant.name + ": " + f.text;
    judge(mutant, f, checker, random(), r);
  }
  return r;
}

std::string to_text(const report& r) {
  std::string text;
  const auto line = [&](const std::string& kind, const tally& t) {
    char buffer[300];
    std::snprintf(
        buffer, sizeof buffer,
        "%-32s %6d mutants %6d different (%6d no program) %6d proven (%6d different) %6d accepted %6d "
        "refused though equal %6d different in f64 (%d not, %d there alone)\n",
        kind.c_str(), t.mutants, t.different, t.no_program, t.proven, t.proven_wrong, t.accepted,
        t.refused_equal, t.different_f64, t.field_only, t.f64_only);
    text += buffer;
  };
  for (const auto& [kind, t] : r.by_kind) line(kind, t);
  line("all", r.total);
  return text;
}

}  // namespace field
