// SPDX-License-Identifier: Apache-2.0
// Programs with declared inputs after lowering: their memory, their certificates, and inputs at wrong places.
#include <doctest/doctest.h>

#include <rankc/codegen/certificate.hpp>
#include <rankc/codegen/equivalence.hpp>
#include <rankc/codegen/lowered.hpp>
#include <rankc/codegen/verify.hpp>

#include "../families/check_lowered.hpp"
#include "plans.hpp"

namespace inputs_lowering_test {

using namespace rankc::codegen;

namespace {

equivalence compare(const certified& c) {
  return check_equivalence(c.steps.at(0).program, c.steps[0].verdict, c.model);
}
std::string first_reason(const equivalence& e) { return e.reasons.empty() ? "" : e.reasons.front(); }
bool is_model(const certified& c) { return compare(c).holds; }
/// The first input with a name that a rank starts with; nullptr if the rank reads none.
holding* find_input(certified& c, const std::string& name) {
  for (rank_program& rank : c.steps.at(0).program.ranks)
    for (holding& h : rank.ops.front().holds)
      if (h.kind == holding_kind::input && h.name == name) return &h;
  return nullptr;
}

}  // namespace

TEST_CASE("certificates are accepted; with an input of another place or name they are not") {
  int programs = 0;
  for (const split_plan& p : inputs_of_models::plans()) {
    CAPTURE(p.layout);
    const lowered l = lower(p.plan, dtype::f64, target::host);
    check_arenas(l);
    for (const program& q : {expand_train(l), expand_evaluate(l)}) {
      const std::string text = certificate({{q, prove(q)}}, specify(p.plan));
      CHECK(verify(text) == "");
      CHECK(first_reason(compare(read_certificate(text))) == "");
      for (const std::string name : {"token_weights", "element_weights", "step_weight", "other_labels"}) {
        CAPTURE(name);
        certified moved = read_certificate(text), renamed = read_certificate(text);
        REQUIRE(find_input(moved, name));
        find_input(moved, name)->box[0].first += 1;
        CHECK(!is_model(moved));
        find_input(renamed, name)->name = name == "token_weights" ? "element_weights" : "token_weights";
        CHECK(!is_model(renamed));
      }
      certified unknown = read_certificate(text);
      find_input(unknown, "other_labels")->name = "labels";
      CHECK(!is_model(unknown));
      ++programs;
    }
  }
  CHECK(programs == 20);
}

}  // namespace inputs_lowering_test
