// SPDX-License-Identifier: Apache-2.0
#include "opinions.hpp"

#include <proof/find_harm.hpp>

#include <exception>

namespace field {

namespace {

/// The number of ops that end late, each in one interleaving.
constexpr int late_ops = 64;

/// Ask the checker. An exception counts as a refusal.
void ask_checker(const judged& j, const opinion& checker, opinions& o) {
  const rankc::codegen::verdict order = rankc::codegen::prove(j.program);
  o.proven = order.ok;
  if (!order.ok) {
    o.refusal = order.reasons.empty() ? "refused without a reason" : order.reasons.front();
    return;
  }
  try {
    o.refusal = checker(j.program, order, j.model);
  } catch (const std::exception& e) {
    o.refusal = o.failure = e.what();
  }
}

execution::outcome run(const std::shared_ptr<const execution::model>& m, const judged& j, unsigned seed) {
  return m ? m->run(j.program, seed, j.loads.get())
           : execution::outcome{false, "the model does not run", false};
}

/// Whether a program is the model for the rows that it says, but not for those that are loaded. It does not
/// start, because the hash of its calls has the rows of every rank.
bool says_other_rows(const judged& j, const opinions& o, unsigned seed) {
  return j.loads && j.exact && !o.exact.equal && j.exact->run(j.program, seed).equal;
}

}  // namespace

opinions ask(const judged& j, const opinion& checker, unsigned seed, asked which) {
  opinions o;
  ask_checker(j, checker, o);
  o.exact = run(j.exact, j, seed);
  if (o.accepted() && says_other_rows(j, o, seed)) o.refusal = "refused when it starts";
  o.f64 = o.exact.equal || which == asked::all ? run(j.f64, j, seed) : o.exact;
  if (o.exact.equal && o.f64.equal) o.harm = rankc::codegen::testing::find_harm(j.program, seed, late_ops);
  return o;
}

std::string find_wrong(const judged& j, const opinion& checker) {
  const opinions o = ask(j, checker, 0, asked::all);
  for (const std::string& why : {o.refusal, o.exact.difference, o.f64.difference, o.harm})
    if (!why.empty()) return why;
  return {};
}

}  // namespace field
