// SPDX-License-Identifier: Apache-2.0
#include "published.hpp"

#include "../../example_plans.hpp"
#include "plans.hpp"

namespace equivalence_tests {
namespace {

void check_case(const published_case& c, const subject& sound, const std::string& reason) {
  CAPTURE(c.name);
  CAPTURE(reason);
  REQUIRE(sound.reason() == "");
  CHECK(placed_of(reason).what.id == c.id);
  CHECK(reason.find(c.names) != std::string::npos);
}

}  // namespace

void check_cases(const std::vector<published_case>& all) {
  for (const published_case& c : all) check_case(c, c.of(), fault(c.of(), c.plant));
}

void check_proofs(const std::vector<published_case>& all) {
  for (const published_case& c : all) {
    subject s = c.of();
    c.plant(s);
    const verdict v = prove(s.p);
    check_case(c, c.of(), v.ok ? "" : v.reasons.at(0));
  }
}

const subject& gpt() {
  static const subject s(examples::plan("gpt_dp2_tp2_pp2"), target::host);
  return s;
}
const subject& llama() {
  static const subject s(small_llama(), target::cuda, dtype::bf16);
  return s;
}
const subject& llama_on_host() {
  static const subject s(small_llama(), target::host, dtype::f64);
  return s;
}

void each_rank(subject& s, const std::function<void(int)>& change) {
  for (int r = 0; r < static_cast<int>(s.p.ranks.size()); ++r) change(r);
}

void leave_out(subject& s, const char* name, std::size_t n) {
  s.find_all(name, "", n);  // throws if no rank has the op
  each_rank(s, [&](int r) {
    if (const std::vector<op*> here = s.find(r, name); n < here.size()) s.leave_out(r, *here[n]);
  });
}

void replace(subject& s, const char* name, collective_kind by) {
  for (op* o : s.find_all(name)) o->does = by;
}

void multiply(subject& s, const char* row, double factor) {
  for (op* o : s.find_all(row, row)) o->number *= factor;
}

void retarget(subject& s, const char* name, const char* to) {
  s.find_all(name);
  each_rank(s, [&](int r) {
    const int other = s.find(r, to).at(0)->communicator;
    for (op* o : s.find(r, name)) o->communicator = other;
  });
}

void read_instead(access& own, const access& other) {
  own.value = other.value;
  own.begin = other.begin;
  own.end = other.end;
}

}  // namespace equivalence_tests
