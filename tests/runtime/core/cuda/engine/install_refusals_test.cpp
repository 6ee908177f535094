// SPDX-License-Identifier: Apache-2.0
// The refusals of install before it touches a device. The test runs on machines without a GPU.
#include "../../../../said.hpp"
#include "../tables.hpp"

#include <doctest/doctest.h>

#include <string>

namespace rankc::runtime::cuda::test {
namespace {

void (*const no_steps[])(rank&) = {nullptr};

using rankc::test::said;

said refusal(const description& about, bool has_training_step = true) {
  try {
    install({.about = about, .train = has_training_step ? no_steps : nullptr, .evaluate = no_steps});
  } catch (const failure& f) {
    CHECK(f.code == 1);
    return rankc::test::said_of(f);
  }
  return {};
}

TEST_CASE("fewer GPUs than ranks are refused with both numbers") {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess) devices = 0;
  const tables t(1, 1000);
  CHECK(refusal(t.about) == said{5130, {"1000", std::to_string(devices)}});
}

TEST_CASE("a program in f64 is refused") {
  tables t(1, 1);
  t.about.type = dtype::f64;
  CHECK(refusal(t.about) == said{5100, {"tables"}});
}

TEST_CASE("a program whose tables and steps disagree about training is refused") {
  tables t(1, 1);
  CHECK(refusal(t.about, false) == said{5031, {"tables"}});
  t.about.trains = false;
  CHECK(refusal(t.about) == said{5032, {"tables"}});
}

TEST_CASE("a program for another runtime interface is refused") {
  tables t(1, 1);
  t.about.interface_version = 99;
  CHECK(refusal(t.about) == said{5030, {"tables", "99", std::to_string(interface_version)}});
}

}  // namespace
}  // namespace rankc::runtime::cuda::test
