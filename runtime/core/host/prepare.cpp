// SPDX-License-Identifier: Apache-2.0
#include <cblas.h>
#include <rankc/runtime/host/rank.hpp>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace rankc::runtime::host {

void prepare([[maybe_unused]] char** argv) {
#if defined(__x86_64__)
  // OpenBLAS chooses its kernels once, when it is loaded, and older versions take processors that they do not
  // know for the oldest relative: half the speed where AVX-512 is there. Only the environment can tell it
  // better.
  const std::string_view chosen = openblas_get_corename();
  const bool narrow = chosen == "Haswell" || chosen == "Zen";
  const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  if (!narrow || !wide || std::getenv("OPENBLAS_CORETYPE")) return;
  setenv("OPENBLAS_CORETYPE", "SkylakeX", 1);
  execv("/proc/self/exe", argv);  // returns only where it failed: then as it is
#endif
}

}  // namespace rankc::runtime::host
