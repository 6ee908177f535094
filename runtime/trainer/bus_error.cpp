// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/bus_error.hpp>

#include <rankc/launch/say_error.hpp>
#include <rankc/launch/stop_signals.hpp>
#include <rankc/runtime/failure.hpp>

#include <csignal>

namespace rankc::runtime {
namespace {

std::atomic<mapped_place*> newest_place = nullptr;
static_assert(std::atomic<mapped_place*>::is_always_lock_free);

/// A free entry of the list, or a new one.
mapped_place* take_place() {
  for (mapped_place* p = newest_place; p != nullptr; p = p->next)
    if (!p->is_taken.exchange(true)) return p;
  auto* made = new mapped_place;
  made->next = newest_place;
  while (!newest_place.compare_exchange_weak(made->next, made)) {
  }
  return made;
}

const mapped_place* place_with(const char* address) {
  for (const mapped_place* p = newest_place; p != nullptr; p = p->next)
    if (const char* begin = p->begin; begin != nullptr && address >= begin && address < begin + p->size)
      return p;
  return nullptr;
}

void tell_and_end(int signal, siginfo_t* about, void*) {
  const bool is_fault = about->si_code > 0;  // otherwise another process sent the signal
  if (const mapped_place* of = is_fault ? place_with(static_cast<const char*>(about->si_addr)) : nullptr) {
    write_error(of->line);
  }
  end_by(signal);
}

}  // namespace

mapped_place* enter_mapped(const char* begin, std::size_t size, const std::string& name) {
  mapped_place* p = take_place();
  p->line = say("RC6005: {} became shorter while it was read, or its disk cannot be read", name) + "\n";
  p->size = size;
  p->begin = begin;
  return p;
}

void leave_mapped(mapped_place* p) noexcept {
  if (p == nullptr) return;
  p->begin = nullptr;
  p->is_taken = false;
}

void name_file_of_bus_error() {
  struct sigaction action{};
  action.sa_sigaction = tell_and_end;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &action, nullptr);
}

}  // namespace rankc::runtime
