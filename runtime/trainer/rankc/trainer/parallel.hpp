// SPDX-License-Identifier: Apache-2.0
// A loop with independent iterations, run by a few threads.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace rankc::runtime {

/// Calls `round(i)` for each i below `count`.
/// Errors: the first exception of a round; the other rounds still run.
template <class Round>
void for_each_in_parallel(std::size_t count, const Round& round) {
  std::atomic<std::size_t> next = 0;
  std::exception_ptr first_error;
  std::mutex mutex;
  const auto work = [&] {
    for (std::size_t i; (i = next++) < count;) try {
        round(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (first_error == nullptr) first_error = std::current_exception();
      }
  };
  {
    std::vector<std::jthread> helpers;
    const std::size_t most = std::min<std::size_t>({8, std::thread::hardware_concurrency(), count});
    for (std::size_t i = 1; i < most; ++i) helpers.emplace_back(work);
    work();
  }
  if (first_error != nullptr) std::rethrow_exception(first_error);
}

}  // namespace rankc::runtime
