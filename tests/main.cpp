// SPDX-License-Identifier: Apache-2.0
// The main of tests that compute with one thread. Ranks wait for each other thousands of times a second, and
// each wait takes milliseconds if a rank also waits for a processor. So these tests yield.
#include <unistd.h>

#include "run_tests.hpp"

int main(int argc, char** argv) {
  static_cast<void>(nice(10));
  doctest::Context context(argc, argv);
  return run_tests(context);
}
