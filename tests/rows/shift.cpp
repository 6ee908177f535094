// SPDX-License-Identifier: Apache-2.0
#include "laws.hpp"

#include <doctest/doctest.h>

namespace rankc::test::rows {

namespace {

/// The loss and the logits' gradient, with `top` subtracted from the logits.
struct loss_and_gradient {
  values loss, gradient;
};
loss_and_gradient from(machine& on, const setting& s, const operands& given) {
  const values &logits = given[1], &top = given[2], &targets = given[3];
  const values sums = on.run(find_row("exp_sums"), s, given)[0];
  const values dsums = on.run(find_row("cross_entropy_grad"), s, {{}, sums})[0];
  return {on.run(find_row("cross_entropy"), s, {{}, sums})[0],
          on.run(find_row("exp_sums_grad"), s, {{}, dsums, logits, top, targets})[0]};
}

}  // namespace

void check_shift(machine& on, const setting& s) {
  const row& r = find_row("exp_sums");
  operands o = random_operands(on, r, s, 13);
  // All targets are in this part.
  for (double& target : o[3])
    target = static_cast<double>(static_cast<int>(target) % s.size.at('v') + s.first);
  const loss_and_gradient want = from(on, s, o);
  for (unsigned seed = 14; seed < 17; ++seed) {
    o[2] = random_port(on, r, 2, s, seed);
    for (double& top : o[2]) top *= 5;
    o[2] = on.rounded(r, 2, o[2]);
    const loss_and_gradient got = from(on, s, o);
    INFO(on.name() << ": the loss depends on what the logits are shifted by");
    CHECK(deviation(got.loss, want.loss) <= on.tolerance());
    CHECK(deviation(got.gradient, want.gradient) <= on.tolerance());
  }
}

}  // namespace rankc::test::rows
