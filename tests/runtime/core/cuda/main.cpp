// SPDX-License-Identifier: Apache-2.0
// Runs the tests of one executable where the machine has the GPUs they need, and says "skipped" (77)
// elsewhere.
#include "../../../run_tests.hpp"

#include <cuda_runtime_api.h>

#include <cstdio>

int main(int argc, char** argv) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess) devices = 0;
  if (devices < RANKC_TEST_GPUS) {
    std::printf("skipped: these tests need %d GPUs, and there are %d\n", RANKC_TEST_GPUS, devices);
    return 77;
  }
  doctest::Context context(argc, argv);
  return run_tests(context);
}
