// SPDX-License-Identifier: Apache-2.0
// Programs with the batches of batch.hpp, compared with PyTorch in float64 on every layout.
#pragma once
#include <string>

#include "batch.hpp"
#include "hashed_oracle.hpp"

namespace packed {

/// Compares losses and gradients. The oracle's losses by wrong rules must differ by more than `apart`.
/// Returns: the number of layouts.
inline int compare_layouts(const std::string& path, double apart) {
  int layouts = 0;
  for (const registered& program : host_registry) {
    if (program.job != "llama") continue;
    CAPTURE(program.layout);
    hashed_oracle oracle(path);
    run r(program, "arith", 1e-3);
    hashed_oracle::load_weights(r);
    for (std::size_t step = 0; step < oracle.steps(); ++step) {
      load_batch(r);
      oracle.check_step(r, step, r.update());
    }
    for (const auto& [rule, loss] : oracle.expected()["wrong"].items())
      CHECK(std::abs(oracle.expected()["losses"][0].get<double>() - loss.get<double>()) > apart);
    ++layouts;
    MESSAGE(program.layout << ": " << oracle.worst_differences());
  }
  return layouts;
}

}  // namespace packed
