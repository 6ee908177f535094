// SPDX-License-Identifier: Apache-2.0
// Certificates of odd plans. Their reader shares no code with the writer and prover of the programs.
#include <doctest/doctest.h>

#include <rankc/codegen/certificate.hpp>
#include <rankc/codegen/lowered.hpp>
#include <rankc/codegen/verify.hpp>

#include "../some_of.hpp"
#include "plans.hpp"

namespace certificate_test {

using namespace rankc::codegen;

TEST_CASE("certificates of odd plans are accepted, for either target") {
  int plans = 0, programs = 0;
  std::size_t n = 0;
  for (const split_plan& p : odd::plans()) {
    if (!rankc::test::takes(n++)) continue;
    ++plans;
    CAPTURE(p.job);
    CAPTURE(p.layout);
    for (const target t : {target::host, target::cuda}) {
      const lowered l = lower(p.plan, t == target::host ? dtype::f64 : dtype::bf16, t);
      for (const program& q : {expand_train(l), expand_evaluate(l)})
        CHECK(verify(certificate(q, prove(q))) == "");
      programs += 2;
    }
  }
  CHECK(n == RANKC_PLANS);
  CHECK(programs == 4 * plans);
}

}  // namespace certificate_test
