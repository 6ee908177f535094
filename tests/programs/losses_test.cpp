// SPDX-License-Identifier: Apache-2.0
// Every layout reproduces PyTorch's float64 losses, from the same weights and samples: of six steps, or of
// all steps if RANKC_EVERY_STEP is set.
#include "losses.hpp"

#include <cstdlib>

namespace {

void reproduce(const std::string& type, double early, double late) {
  const std::size_t steps = std::getenv("RANKC_EVERY_STEP") ? std::numeric_limits<std::size_t>::max() : 6;
  loss_difference worst;
  int compared = 0;
  for (const registered& program : host_registry) {
    if (program.type != type || !has_oracle(program)) continue;
    CAPTURE(program.job);
    CAPTURE(program.layout);
    const loss_difference d = difference_of_losses(program, steps);
    CHECK(d.early <= early);
    CHECK(d.late <= late);
    worst = {std::max(worst.early, d.early), std::max(worst.late, d.late)};
    ++compared;
  }
  CHECK(compared == expected_of(compared, programs::count_made("host", type)));
  MESSAGE(type << ": largest difference " << worst.early << " in the first 5 steps, " << worst.late
               << " after");
}

}  // namespace

TEST_CASE("f64 losses are PyTorch's to 1e-9") { reproduce("f64", 1e-9, 1e-9); }
TEST_CASE("f32 losses are PyTorch's to 2e-5 in the first five steps and 5e-4 after") {
  reproduce("f32", 2e-5, 5e-4);
}
