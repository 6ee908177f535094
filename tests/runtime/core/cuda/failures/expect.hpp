// SPDX-License-Identifier: Apache-2.0
// Expectations for a step on a faulting GPU: it ends within seconds on all ranks, says where the fault is,
// and refuses to go on.
#pragma once
#include "../../../../said.hpp"
#include "../../../../slowness.hpp"
#include "../tables.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <string>

namespace rankc::runtime::cuda::test {

inline constexpr step_input nothing{
    .lr = 0, .weight_decay = 0, .clip = 0, .beta1 = 0, .beta2 = 0, .eps = 1, .step = 1},
    faulty{.lr = 1, .weight_decay = 0, .clip = 0, .beta1 = 0, .beta2 = 0, .eps = 1, .step = 1};

/// Run two steps, then one in which rank 1's GPU faults. Within one process it is unknown which GPU faulted.
inline void check_that_a_fault_ends_the_step(engine& e) {
  e.step(nothing);
  e.step(nothing);
  const auto start = std::chrono::steady_clock::now();
  std::string text;
  int code = 0;
  try {
    e.step(faulty);
  } catch (const failure& f) {
    text = f.what();
    code = f.code;
  }
  CAPTURE(text);
  CHECK(code == 70);
  CHECK(text.find(", step 3: RC5125: ") == std::string("rank 0").size());
  CHECK(std::chrono::steady_clock::now() - start < rankc::test::scaled(5));
  CHECK_THROWS_AS(e.step(nothing), failure);
}

}  // namespace rankc::runtime::cuda::test
