// SPDX-License-Identifier: Apache-2.0
#include "blas_buffers.hpp"

#include <rankc/runtime/failure.hpp>
#include <rankc/runtime/process_limits.hpp>

#include <dlfcn.h>
#include <sys/mman.h>
#include <cstddef>
#include <vector>

// OpenBLAS exports these symbols, but no header declares them. A build that hides them keeps its own
// behaviour.
extern "C" {
[[gnu::weak]] void* blas_memory_alloc(int position);
[[gnu::weak]] void blas_memory_free(void*);
[[gnu::weak, gnu::used, gnu::visibility("default")]] int openblas_num_threads_env();
}

namespace rankc::runtime::host {
namespace {

constexpr std::size_t buffer_bytes = (std::size_t{128} << 20) + (64 << 10);  // x86-64, rounded up
constexpr std::size_t stack_bytes = std::size_t{8} << 20;

bool memory_is_limited() {
  rlimit limit{};
  return has_limit(RLIMIT_AS, limit) || has_limit(RLIMIT_DATA, limit);
}

bool can_have(std::size_t bytes) {
  void* const at =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at != MAP_FAILED && ::munmap(at, bytes) == 0;
}

}  // namespace

bool can_have_blas_threads(int threads) {
  return !memory_is_limited() || can_have(static_cast<std::size_t>(threads) * (buffer_bytes + stack_bytes));
}

void reserve_blas_buffers(int threads) {
  if (!memory_is_limited()) return;
  if (blas_memory_alloc == nullptr || blas_memory_free == nullptr) return;
  std::vector<void*> buffers;
  while (static_cast<int>(buffers.size()) < threads && can_have(buffer_bytes))
    buffers.push_back(blas_memory_alloc(0));
  const std::string has = memory_text();
  for (void* buffer : buffers) blas_memory_free(buffer);
  if (static_cast<int>(buffers.size()) < threads)
    throw failure(70,
                  "RC5025: install: {} threads need {} bytes each for OpenBLAS, and the process may not "
                  "allocate them: {}; raise the limit, or start one process for each rank",
                  threads, buffer_bytes, has);
}

}  // namespace rankc::runtime::host

// OpenBLAS calls this function to read OPENBLAS_NUM_THREADS, then starts its threads, before main. It ends
// the process if a thread cannot start. This definition precedes OpenBLAS's own and calls it.
int openblas_num_threads_env() {
  void* const theirs = ::dlsym(RTLD_NEXT, "openblas_num_threads_env");
  const int chosen = theirs == nullptr ? 0 : reinterpret_cast<int (*)()>(theirs)();
  return chosen == 0 && rankc::runtime::host::memory_is_limited() ? 1 : chosen;
}
