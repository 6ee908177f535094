// SPDX-License-Identifier: Apache-2.0
#include "judge.hpp"

#include <cstdio>

namespace field {

namespace {

void add_to(tally& sum, const tally& one) {
  for (int tally::* count : {&tally::mutants, &tally::different, &tally::no_program, &tally::proven,
                             &tally::proven_wrong, &tally::accepted, &tally::refused_equal,
                             &tally::different_f64, &tally::field_only, &tally::f64_only, &tally::harmful})
    sum.*count += one.*count;
}

tally tally_of(const opinions& o) {
  return {.mutants = 1,
          .different = !o.exact.equal,
          .no_program = !o.exact.is_program,
          .proven = o.proven,
          .proven_wrong = o.proven && !o.exact.equal,
          .accepted = o.accepted(),
          .refused_equal = !o.accepted() && !o.different(),
          .different_f64 = !o.f64.equal,
          .field_only = !o.exact.equal && o.f64.equal,
          .f64_only = o.exact.equal && !o.f64.equal,
          .harmful = o.exact.equal && o.f64.equal && !o.harm.empty()};
}

void add(report& r, const fault& f, const opinions& o) {
  const std::string text = f.kind + ": " + f.text + ": ";
  const tally one = tally_of(o);
  add_to(r.total, one);
  add_to(r.by_kind[f.kind], one);
  if (!o.failure.empty()) r.failures.push_back(text + o.failure);
  if (o.accepted() && !o.exact.equal) r.false_accepts.push_back(text + o.exact.difference);
  if (o.accepted() && !o.f64.equal) r.false_accepts.push_back(text + "in f64 " + o.f64.difference);
  if (o.accepted() && !o.harm.empty()) r.false_accepts.push_back(text + "in an interleaving " + o.harm);
  if (one.field_only) r.field_only[f.kind].push_back(text + o.exact.difference);
  if (one.f64_only) r.f64_only[f.kind].push_back(text + o.f64.difference);
  if (o.proven && one.refused_equal) r.strict[f.kind].push_back(text + o.refusal);
}

}  // namespace

report judge_mutants(const std::vector<subject>& subjects, const opinion& checker, int count, unsigned seed) {
  report r;
  std::vector<judged> all;
  for (const subject& s : subjects) {
    judged j = judged_of(s);
    if (const std::string why = find_wrong(j, checker); why.empty()) all.push_back(std::move(j));
    else r.wrong_programs.push_back(s.name + ": " + why);
  }
  std::mt19937 random(seed);
  for (std::size_t next = 0; !all.empty() && r.total.mutants < count; next = (next + 1) % all.size()) {
    const mutant m = draw_mutant(all[next], random);
    add(r, m.what, ask(m.of, checker, random(), asked::all));
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
        "refused though equal %6d different in f64 (%d not, %d there alone) %d harmful\n",
        kind.c_str(), t.mutants, t.different, t.no_program, t.proven, t.proven_wrong, t.accepted,
        t.refused_equal, t.different_f64, t.field_only, t.f64_only, t.harmful);
    text += buffer;
  };
  for (const auto& [kind, t] : r.by_kind) line(kind, t);
  line("all", r.total);
  return text;
}

}  // namespace field
