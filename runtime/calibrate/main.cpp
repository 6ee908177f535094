// SPDX-License-Identifier: Apache-2.0
// Times the kernels of a training step on the machine's GPU and prints a JSON line per shape. rankc's cost
// model is calibrated with them.
#include "stand.hpp"

#include <cstdio>
#include <exception>

int main() try {
  rankc::calibrate::stand here;
  std::printf("{\"gpu\":\"%s\",\"processors\":%d}\n", here.device().name, here.device().multiProcessorCount);
  rankc::calibrate::write_power(here);
  rankc::calibrate::write_passes(here);
  rankc::calibrate::write_attention(here);
  rankc::calibrate::write_products(here);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
