// SPDX-License-Identifier: Apache-2.0
// Every step of every program against the optimizer's formulas.
#include "../said.hpp"
#include "steps.hpp"

#include <set>

namespace update_test {

using optimizing::region;

TEST_CASE("each step is the optimizer's, element by element") {
  std::set<std::string> optimizers;
  std::size_t elements = 0;
  for (const registered& program : host_registry) {
    CAPTURE(program.job);
    CAPTURE(program.layout);
    optimizers.insert(program.job);
    // f64 is rounded to f32 on its way to bf16.
    elements += optimizing::check_steps(program, 3, program.about->bf16_moments ? 1e-7 : 1e-13);
  }
  CHECK(optimizers.size() == 13);
  CHECK(elements > (host_has_every_program ? 1'000'000 : 700'000));
}

TEST_CASE("a moment that the optimizer has not is not there to be read") {
  int refused = 0;
  for (const registered& program : host_registry) {
    if (program.layout != "one" || program.about->moments == 2) continue;
    run r(program);
    CHECK(rankc::test::said_by([&] { r.tensors(region::second_moment); }) ==
          rankc::test::said{5008, {program.about->name, "second moment"}});
    if (program.about->moments == 0)
      CHECK(rankc::test::said_by([&] { r.tensors(region::first_moment); }) ==
            rankc::test::said{5008, {program.about->name, "first moment"}});
    ++refused;
  }
  CHECK(refused == 7);
}

}  // namespace update_test
