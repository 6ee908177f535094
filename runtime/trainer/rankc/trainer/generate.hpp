// SPDX-License-Identifier: Apache-2.0
// Text generation: each token is sampled from the logits that the forward program computes for the next
// position.
#pragma once
#include <rankc/trainer/trainer.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace rankc::runtime {

/// How the next token is chosen. `temperature` 0: the most likely token, the first of several; `top_k` 0:
/// among all tokens.
struct sampling {
  double temperature = 0.8;
  int top_k = 0;
  std::uint64_t seed = 1;
};

/// Chooses the token at `position` from its logits. The random bits depend on seed and position alone.
int choose_token(std::span<const double> logits, const sampling&, std::uint64_t position);

/// The logits of the token after `tokens`. The forward pass sees the last seq of them.
/// Shapes: (vocab_used).
/// Errors: failure (1) if the program keeps no logits.
std::vector<double> next_logits(engine&, std::span<const std::int32_t> tokens);

/// Prints a prompt and its generated continuation.
/// Errors: failure, with the exit code of the program.
void generate(const description&, const install_engine& install, const options&);

}  // namespace rankc::runtime
