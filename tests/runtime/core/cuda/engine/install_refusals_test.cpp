// SPDX-License-Identifier: Apache-2.0
// What install refuses before it touches a device; this runs on machines without one.
#include "../tables.hpp"

#include <doctest/doctest.h>

#include <string>

namespace rankc::runtime::cuda::test {
namespace {

void (*const no_steps[])(rank&) = {nullptr};

std::string refusal(const description& about, bool has_training_step = true) {
  try {
    install({.about = about, .train = has_training_step ? no_steps : nullptr, .evaluate = no_steps});
  } catch (const failure& f) {
    CHECK(f.code == 1);
    return f.what();
  }
  return "";
}

TEST_CASE("fewer GPUs than ranks are refused with both numbers") {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess) devices = 0;
  const tables t(1, 1000);
  CHECK(refusal(t.about) == "the plan has 1000 ranks, one GPU each, and this machine has " +
                                std::to_string(devices) +
                                " GPUs; use a machine with more, or a plan with fewer ranks");
}

TEST_CASE("a program in f64 is refused") {
  tables t(1, 1);
  t.about.type = dtype::f64;
  CHECK(refusal(t.about) ==
        "the program's type is f64, which the cuda target does not have; use f32 or bf16, or the host");
}

TEST_CASE("a program whose tables and steps disagree about training is refused") {
  tables t(1, 1);
  CHECK(refusal(t.about, false) ==
        "the program's tables say that it trains, and it has no training step; generate it again");
  t.about.trains = false;
  CHECK(refusal(t.about) ==
        "the program's tables say that it has forwards alone, and it has a training step; generate it again");
}

TEST_CASE("a program for another runtime interface is refused") {
  tables t(1, 1);
  t.about.interface_version = 99;
  CHECK(refusal(t.about) == "the program was generated for runtime interface 99, this runtime has " +
                                std::to_string(interface_version) + "; generate it again");
}

}  // namespace
}  // namespace rankc::runtime::cuda::test
