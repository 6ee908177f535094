// SPDX-License-Identifier: Apache-2.0
// OpenBLAS chooses its kernels once, when it is loaded. Older versions mistake an unknown processor for a
// much older one: a new Xeon ran with SSE3 kernels, at a quarter of its speed. Only an environment variable
// changes the choice, so the program sets it and starts again.
#include <cblas.h>
#include <rankc/runtime/host/rank.hpp>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "openblas_core.hpp"

namespace rankc::runtime::host {

#if defined(__x86_64__)
static vector_width width_of_processor() {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
    return vector_width::avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return vector_width::avx2;
  return vector_width::narrower;
}
#endif

void prepare([[maybe_unused]] char** argv) {
#if defined(__x86_64__)
  if (std::getenv("OPENBLAS_CORETYPE")) return;
  const std::string_view core = wider_core(openblas_get_corename(), width_of_processor());
  if (core.empty()) return;
  setenv("OPENBLAS_CORETYPE", std::string(core).c_str(), 1);
  execv("/proc/self/exe", argv);  // returns on failure; the program then runs with the kernels it has
#endif
}

}  // namespace rankc::runtime::host
