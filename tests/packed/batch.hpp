// SPDX-License-Identifier: Apache-2.0
// The batches of torch_packed.py: tokens, some of which end documents; labels, some of which are ignored; and
// token weights.
#pragma once
#include <cstdint>
#include <vector>

#include "run.hpp"

namespace packed {

inline std::uint64_t drawn(std::uint64_t number, std::uint64_t place) {
  return (number + 17 * place) * 2654435761u >> 8;
}

/// A row of a step's batch, with one token more than a sequence.
inline std::vector<std::int32_t> row_of_tokens(const run& r, std::int64_t step, std::uint64_t row) {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(r.about.seq) + 1);
  const std::uint64_t first =
      (static_cast<std::uint64_t>(step * r.about.global_batch()) + row) * tokens.size();
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::uint64_t number = drawn(first + i, 100);
    tokens[i] = static_cast<std::int32_t>(number % 5 == 0 ? 3 : number % 16);
  }
  return tokens;
}

/// Loads the batch of the run's next step. Each row ignores another share of its labels.
inline void load_batch(run& r) {
  const auto seq = static_cast<std::size_t>(r.about.seq);
  const auto read = [&](std::uint64_t row, const rankc::runtime::sample_view& to) {
    const std::vector<std::int32_t> tokens = row_of_tokens(r, r.steps, row);
    const std::uint64_t first = (static_cast<std::uint64_t>(r.steps * r.about.global_batch()) + row) * seq;
    for (std::size_t i = 0; i < seq; ++i) {
      to.tokens[i] = tokens[i];
      to.targets[i] = drawn(first + i, 200) % 8 < row ? r.about.ignored_label : tokens[i + 1];
      to.inputs[0][i] = 0.5 + static_cast<double>(drawn(first + i, 1) % 1000) / 1000;
    }
  };
  set_batch(*r.engine, read_batch(r.about, read));
}

}  // namespace packed
