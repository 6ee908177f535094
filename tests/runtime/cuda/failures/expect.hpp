// SPDX-License-Identifier: Apache-2.0
// What a failing step must do: name the rank that failed, within seconds, and refuse to go on.
#pragma once
#include "../tables.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <vector>

namespace rankc::cuda::test {

inline constexpr step_input nothing{
    .lr = 0, .weight_decay = 0, .clip = 0, .beta1 = 0, .beta2 = 0, .eps = 1, .step = 1};

/// Two steps are taken; then the token is set that makes rank 1 fail.
inline void check_that_rank_1_fails_alone(engine& e) {
  e.step(nothing);
  e.step(nothing);
  const std::vector<std::int32_t> asked(n_rows * n_seq, 1), zeros(n_rows * n_seq, 0);
  e.set_batch(0, 0, asked.data(), zeros.data());
  const auto start = std::chrono::steady_clock::now();
  std::string text;
  int code = 0;
  try {
    e.step(nothing);
  } catch (const failure& f) {
    text = f.what();
    code = f.code;
  }
  CAPTURE(text);
  CHECK(code == 70);
  CHECK(text.starts_with("rank 1, step 3: the device, after the step was launched: "));
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
  CHECK_THROWS_AS(e.step(nothing), failure);
}

}  // namespace rankc::cuda::test
