// SPDX-License-Identifier: Apache-2.0
#include "teardown.hpp"

#include <rankc/runtime/embedded.hpp>
#include <rankc/runtime/failure.hpp>

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace rankc::runtime::cuda {
namespace {

thread_local failed_calls* of_thread = nullptr;

void print_at_exit();

/// The object is never destroyed, because a thread that aborts communicators may outlive main.
failed_calls& of_process() {
  static failed_calls* const all = [] {
    std::atexit(print_at_exit);
    return new failed_calls;
  }();
  return *all;
}

void print_at_exit() {
  if (const std::string line = of_process().line(); !line.empty())
    std::fprintf(stderr, "note: %s\n", line.c_str());
}

}  // namespace

void teardown_failed(const char* call, const char* answer) noexcept {
  (of_thread != nullptr ? *of_thread : of_process()).add(call, answer);
}

void failed_calls::add(const char* call, const char* answer) noexcept {
  const std::lock_guard lock(mutex_);
  if (++count_ > 1) return;
  first_ = call;
  answer_ = answer;
}

std::string failed_calls::line() const {
  const std::lock_guard lock(mutex_);
  if (count_ == 0) return "";
  return say("RC5150: calls that failed while resources of GPUs were freed: {}; the first is {} ({})", count_,
             first_, answer_);
}

teardown_log::teardown_log(const std::function<void(const char* line)>& to) noexcept
    : to_(to), before_(std::exchange(of_thread, &calls_)) {}

teardown_log::~teardown_log() {
  of_thread = before_;
  if (const std::string line = calls_.line(); to_ && !line.empty())
    static_cast<void>(status_of([&] { to_(line.c_str()); }));
}

}  // namespace rankc::runtime::cuda
