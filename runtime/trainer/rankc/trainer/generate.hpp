// SPDX-License-Identifier: Apache-2.0
// Text from a trained model: one token after the other, each drawn from what the forward program gives for
// the next.
#pragma once
#include <rankc/trainer/trainer.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace rankc::runtime {

/// How the next token is chosen. `temperature` 0: the likeliest, of several the first; `top_k` 0: of all.
struct sampling {
  double temperature = 0.8;
  int top_k = 0;
  std::uint64_t seed = 1;
};

/// Token number `position`, of its logits: drawn by bits that follow from seed and position alone.
int choose_token(std::span<const double> logits, const sampling&, std::uint64_t position);

/// The logits of the token after `tokens`, of which the last seq are seen. Shapes: (vocab_used).
/// Errors: failure (1) where the program leaves none.
std::vector<double> next_logits(engine&, std::span<const std::int32_t> tokens);

/// Print a prompt and what follows it.
/// Errors: failure, with the exit code of the program.
void generate(const description&, const install_engine& install, const options&);

}  // namespace rankc::runtime
