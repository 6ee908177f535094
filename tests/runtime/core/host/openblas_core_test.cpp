// SPDX-License-Identifier: Apache-2.0
#include <cblas.h>
#include <doctest/doctest.h>

#include "host/openblas_core.hpp"

namespace openblas_core_test {

using namespace rankc::runtime::host;

TEST_CASE("a processor with wider vectors than OpenBLAS's choice gets a wider core") {
  using enum vector_width;
  for (const char* old : {"Prescott", "Core2", "Nehalem", "Sandybridge", "Barcelona", "a core of tomorrow"}) {
    CAPTURE(old);
    CHECK(wider_core(old, avx512) == "SkylakeX");
    CHECK(wider_core(old, avx2) == "Haswell");
    CHECK(wider_core(old, narrower) == "");
  }
  for (const char* core : {"Haswell", "Zen", "Excavator"}) {
    CAPTURE(core);
    CHECK(wider_core(core, avx512) == "SkylakeX");
    CHECK(wider_core(core, avx2) == "");
  }
  for (const char* core : {"SkylakeX", "Cooperlake", "SapphireRapids"}) {
    CAPTURE(core);
    CHECK(wider_core(core, avx512) == "");
    CHECK(wider_core(core, avx2) == "");
  }
}

#if defined(__x86_64__)
TEST_CASE("this program, started again where it had to be, uses kernels as wide as the processor's vectors") {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
    MESSAGE("not tested: this processor has no AVX2");
    CHECK(true);
    return;
  }
  CHECK(width_of(openblas_get_corename()) != vector_width::narrower);
}
#endif

}  // namespace openblas_core_test
