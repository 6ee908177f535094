// SPDX-License-Identifier: Apache-2.0
// The number of OpenBLAS threads that a memory limit allows.
#include "host/blas_buffers.hpp"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>
#include <fstream>

using rankc::runtime::host::can_have_blas_threads;

TEST_CASE("a limit of memory allows the threads whose stacks and buffers fit") {
  CHECK(can_have_blas_threads(100'000));
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_AS, &before) == 0);
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit limited = before;
  limited.rlim_cur = pages * static_cast<rlim_t>(getpagesize()) + (rlim_t{4} << 30);
  REQUIRE(setrlimit(RLIMIT_AS, &limited) == 0);
  const bool few = can_have_blas_threads(10), many = can_have_blas_threads(100);
  REQUIRE(setrlimit(RLIMIT_AS, &before) == 0);
  CHECK(few);
  CHECK_FALSE(many);
}
