// SPDX-License-Identifier: Apache-2.0
#include "injected.hpp"

#include "../device/check.hpp"
#include "../device/teardown.hpp"

#include <signal.h>
#include <unistd.h>
#include <cstdlib>

namespace rankc::runtime::cuda {
namespace {

constexpr double seconds_to_see_it = 10;  // time for the watching thread to see it

}  // namespace

injected::injected(const injection& what) : what_(what) {
  if (what.when != injection::moment::call || what.what >= injection::fault::flip)
    throw failure(
        2,
        "RC5138: --inject: a fault on a GPU must be kill, stop, exit, abort, throw or delay, before an "
        "action: op=N");
  void* memory = nullptr;
  if (cudaHostAlloc(&memory, sizeof(unsigned), cudaHostAllocPortable | cudaHostAllocMapped) != cudaSuccess)
    throw no_pinned_memory();
  is_over_ = static_cast<volatile unsigned*>(memory);
  *is_over_ = 0;
}

injected::~injected() {
  check_teardown(cudaFreeHost(const_cast<unsigned*>(is_over_)), "--inject: cudaFreeHost");
}

void injected::enqueue(const lane& on, std::uint64_t action) {
  if (action == what_.op)
    hold_up_device(on, static_cast<std::uint32_t>(what_.step), is_over_,
                   what_.what == injection::fault::delay ? what_.seconds : seconds_to_see_it);
}

void injected::meet(const rank& r, std::int64_t step, std::uint64_t actions) {
  if (step != what_.step || actions != what_.op || *is_over_ != 0 || what_.what == injection::fault::delay)
    return;
  *is_over_ = 1;
  switch (what_.what) {
    case injection::fault::kill:
      kill(getpid(), SIGKILL);
      return;
    case injection::fault::stop:
      kill(getpid(), SIGSTOP);
      return;
    case injection::fault::exit:
      std::_Exit(what_.code);
    case injection::fault::abort:
      std::abort();
    case injection::fault::throws:
      fail(r, "RC5055: an exception was thrown on purpose (--inject)");
    default:
      return;
  }
}

}  // namespace rankc::runtime::cuda
