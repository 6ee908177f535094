// SPDX-License-Identifier: Apache-2.0
// The resources of a step: it creates none, and the arenas are as large as planned.
#include <doctest/doctest.h>

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <new>

#include "plans.hpp"
#include "run.hpp"

namespace {
std::atomic<long> allocations{0};

int threads() {
  int n = 0;
  for ([[maybe_unused]] const auto& t : std::filesystem::directory_iterator("/proc/self/task")) ++n;
  return n;
}
}  // namespace

// Count every allocation of the process: the library's `operator new`, and malloc below it.
void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* p = std::malloc(bytes ? bytes : 1)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }

TEST_CASE("a step creates nothing: no allocation, no thread") {
  int measured = 0;
  for (const registered& program : host_registry) {
    if (program.type != "f32" && program.job != "gpt2_4") continue;
    CAPTURE(program.layout);
    run r(program);
    r.step();  // OpenBLAS allocates its buffers on first use
    r.load();
    const auto& t = r.about.train;
    const rankc::runtime::step_input input{3e-4, t.weight_decay, t.clip, t.beta1, t.beta2, t.eps, 2};
    const int threads_before = threads();
    const std::size_t heap_before = mallinfo2().uordblks;
    const long before = allocations;
    r.engine->step(input);
    r.engine->evaluate();
    const long after = allocations;
    CHECK(after == before);
    CHECK(mallinfo2().uordblks == heap_before);
    CHECK(threads() == threads_before);
    ++measured;
  }
  const int all = programs::count_made("host", "f32") + programs::count_made("host", "f64", {"gpt2_4"});
  CHECK(measured == expected_of(measured, all));
  CHECK(measured >= 10);
}

TEST_CASE("an arena has the planned size") {
  const int found = static_cast<int>(host_registry.size());
  CHECK(found ==
        expected_of(found, programs::count_made("host", "f64") + programs::count_made("host", "f32") +
                               static_cast<int>(programs::pipelines().size())));
  for (const registered& program : host_registry) {
    const auto& about = *program.about;
    const auto engine = program.install();
    for (int rank = 0; rank < about.world(); ++rank)
      CHECK(engine->arena_bytes(rank) == about.layouts[about.ranks[rank].pp].arena_bytes);
  }
}
