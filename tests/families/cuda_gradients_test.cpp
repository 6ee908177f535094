// SPDX-License-Identifier: Apache-2.0
// A family's plans on GPUs in f32: the first step's gradients match those of one rank on the host in f64.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "calls.hpp"

namespace {

using rankc::runtime::region;

tensors gradients_of(const registered& program) {
  run r(program);
  r.step();
  tensors all = r.tensors(region::gradients);
  if (program.type == "f32") step_by_calls(r, true);
  return all;
}

/// Whether the ranks share one GPU and the plan would hang there: tests/one_gpu.cmake says why.
bool hangs_on_one_gpu(const registered& program) {
  return std::getenv("RANKC_RANKS_ON_ONE_GPU") != nullptr && program.layout == "dual_pipe_v";
}

/// Compares all plans that need `least` to `most` GPUs.
void compare(int least, int most, int expected) {
  int plans = 0, left_out = 0;
  double worst = 0;
  for (const registered& program : cuda_registry) {
    if (program.about->world() < least || program.about->world() > most) continue;
    CAPTURE(program.job);
    CAPTURE(program.layout);
    if (hangs_on_one_gpu(program)) {
      ++left_out;
      continue;
    }
    const auto one = std::find_if(host_registry.begin(), host_registry.end(), [&](const registered& h) {
      return h.job == program.job && h.layout == "one";
    });
    REQUIRE(one != host_registry.end());
    const tensors wanted = gradients_of(*one), got = gradients_of(program);
    REQUIRE(wanted.size() == got.size());
    const double scale = largest(of_loss(wanted));
    for (const auto& [name, values] : wanted) {
      CAPTURE(name);
      REQUIRE(got.count(name) == 1);
      REQUIRE(got.at(name).size() == values.size());
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double error = std::abs(values[i] - got.at(name)[i]) / scale;
        CHECK(error <= 1e-4);
        worst = std::max(worst, error);
      }
    }
    ++plans;
  }
  CHECK(plans + left_out == expected);
  MESSAGE(plans << " plans on up to " << most << " GPUs, largest difference " << worst
                << " of the largest gradient; " << left_out
                << " left out, which ranks on one GPU cannot run");
}

}  // namespace

TEST_CASE("1 GPU: plans compute the host's gradients") { compare(1, 1, RANKC_ON_ONE); }
#if RANKC_ON_TWO
TEST_CASE("2 GPUs: plans compute the host's gradients") { compare(2, 2, RANKC_ON_TWO); }
#endif
#if RANKC_ON_FOUR
TEST_CASE("4 GPUs: plans on three or four compute the host's gradients") { compare(3, 4, RANKC_ON_FOUR); }
#endif
