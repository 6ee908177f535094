// SPDX-License-Identifier: Apache-2.0
// Runs the test cases that need RANKC_TEST_GPUS GPUs (an environment variable), or says "skipped" (77).
#include "../../run_tests.hpp"

#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <string>

int main(int argc, char** argv) {
  const char* needed = std::getenv("RANKC_TEST_GPUS");
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess) devices = 0;
  if (needed == nullptr || devices < std::atoi(needed)) {
    std::printf("skipped: these tests need %s GPUs, and there are %d\n",
                needed ? needed : "RANKC_TEST_GPUS (1, 2 or 4)", devices);
    return 77;
  }
  doctest::Context context(argc, argv);
  context.addFilter("test-case", (std::string(needed) + " GPU*").c_str());
  return run_tests(context);
}
