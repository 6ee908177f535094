// SPDX-License-Identifier: Apache-2.0
// The main of tests that compute on the host, with the OpenBLAS kernels that programs use.
#include <rankc/runtime/host/rank.hpp>

#include "run_tests.hpp"

int main(int argc, char** argv) {
  rankc::host::prepare(argv);
  doctest::Context context(argc, argv);
  return run_tests(context);
}
