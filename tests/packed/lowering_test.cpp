// SPDX-License-Identifier: Apache-2.0
// Programs of packed plans after lowering: their certificates, and a user-defined loss divided by a wrong
// number of labels.
#include <doctest/doctest.h>

#include <rankc/codegen/certificate.hpp>
#include <rankc/codegen/equivalence.hpp>
#include <rankc/codegen/lowered.hpp>
#include <rankc/codegen/verify.hpp>

#include <set>
#include <string>
#include <vector>

#include "../codegen/equivalence/subject.hpp"
#include "models.hpp"
#include "plans.hpp"

namespace packed_lowering_test {

using namespace rankc::codegen;
using equivalence_tests::subject;

namespace {

/// The first reason why the programs of a certificate do not match its model; empty if they match.
std::string reason_of(const std::string& text) {
  const certified c = read_certificate(text);
  const equivalence e = check_equivalence(c.steps.at(0).program, c.steps[0].verdict, c.model);
  return e.reasons.empty() ? "" : e.reasons.front();
}

}  // namespace

TEST_CASE("certificates of packed plans are accepted") {
  int programs = 0;
  for (const split_plan& p : packed::plans()) {
    CAPTURE(p.job);
    CAPTURE(p.layout);
    const lowered l = lower(p.plan, dtype::f64, target::host);
    for (const program& q : {expand_train(l), expand_evaluate(l)}) {
      const std::string text = certificate({{q, prove(q)}}, specify(p.plan));
      CHECK(verify(text) == "");
      CHECK(reason_of(text) == "");
      ++programs;
    }
  }
  CHECK(programs == 28);
}

TEST_CASE("a user's own loss by the number of a rank's labels is refused") {
  for (const auto& [layout, name] :
       {std::pair("dp2", "number of labels over dp"), std::pair("four", "labels of microbatch 2")}) {
    CAPTURE(std::string(layout));
    subject s(find_plan(packed::plans(), "llama", layout), target::host, dtype::f64, false);
    REQUIRE(s.reason() == "");
    for (int r = 0; r < static_cast<int>(s.p.ranks.size()); ++r)
      for (op* o : s.find(r, name)) s.leave_out(r, *o);
    CHECK(s.reason().find("masked_square: RC7428") != std::string::npos);
  }
}

TEST_CASE("a program of other documents or other labels is another program") {
  const auto hash_of = [](int end_of_document, int ignored_label, bool ignores_across) {
    const rankc::training recipe{.seq = 16,
                                 .global_batch = 8,
                                 .end_of_document = end_of_document,
                                 .ignored_label = ignored_label,
                                 .ignore_across_documents = ignores_across};
    return lower(packed::plan_of(recipe), dtype::f32, target::host).hash;
  };
  const std::set all{hash_of(3, -100, false), hash_of(3, -100, true), hash_of(3, -1, true),
                     hash_of(4, -100, true)};
  CHECK(all.size() == 4);
}

}  // namespace packed_lowering_test
