// SPDX-License-Identifier: Apache-2.0
#include "run_tests.hpp"

int main(int argc, char** argv) {
  doctest::Context context(argc, argv);
  return run_tests(context);
}
