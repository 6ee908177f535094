// SPDX-License-Identifier: Apache-2.0
// The losses of the fake engine, computed from its definition sample by sample.
#pragma once
#include <rankc/trainer/data.hpp>
#include <rankc/trainer/parameters.hpp>

#include "fake_engine.hpp"

#include <string>
#include <vector>

namespace rankc::runtime {

inline std::string text_of(int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>('a' + i * i % 23);
  return text;
}

/// The mean loss over samples `first` to `end` - 1 of a text file, with the weights of hash:1.
inline double mean_loss_of(const fake_program& program, const std::string& file, std::uint64_t first,
                           std::uint64_t end) {
  fake_engine e(program);
  initialise(e, 1);
  const dataset data(parse_data_spec(file), program.vocab, program.about.seq);
  const auto seq = static_cast<std::size_t>(program.about.seq);
  double sum = 0;
  for (std::uint64_t s = first; s < end; ++s) {
    std::vector<std::int32_t> tokens(seq), targets(seq);
    data.sample(s, tokens.data(), targets.data());
    for (std::size_t t = 0; t < seq; ++t)
      for (const std::int32_t id : {tokens[t], targets[t]})
        sum += static_cast<double>(splitmix64(static_cast<std::uint64_t>(id) * 8 + t) % 1000);
  }
  return program.about.global_batch() * sum * 1e-5 / static_cast<double>(end - first) +
         e.of(0, region::weights)[0];
}

}  // namespace rankc::runtime
