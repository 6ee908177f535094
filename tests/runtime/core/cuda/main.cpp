// SPDX-License-Identifier: Apache-2.0
// Runs the tests of one executable on a machine with the GPUs that they need. Otherwise it prints "skipped"
// and ends with 77.
#include "../../../run_tests.hpp"

#include <cuda_runtime_api.h>

#include <cstdio>

extern const int gpus_of_test;  // defined by each test (cuda.cmake)

int main(int argc, char** argv) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess) devices = 0;
  if (devices < gpus_of_test) {
    std::printf("skipped: these tests need %d GPUs, and there are %d\n", gpus_of_test, devices);
    return 77;
  }
  doctest::Context context(argc, argv);
  return run_tests(context);
}
