// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/orderly_stop.hpp>

#include <rankc/launch/say_error.hpp>
#include <rankc/launch/stop_signals.hpp>

#include <atomic>

namespace rankc::runtime {
namespace {

constexpr const char* being_saved = "the run is being saved; one more signal ends the program at once\n";

std::atomic<const char*> on_second =
    nullptr;  // the line that answers it; null: the second signal ends the process
static_assert(std::atomic<const char*>::is_always_lock_free);

void act_on_stop(int signal, int times) {
  if (times == 1) return;
  const char* answer = on_second;
  if (times == 2 && answer != nullptr) return write_error(answer);
  end_by(signal);
}

}  // namespace

orderly_stop::orderly_stop(bool saves, bool speaks) {
  if (!saves) on_second = nullptr;
  else on_second = speaks ? being_saved : "";
  take_stop_signals(act_on_stop);
}

int orderly_stop::asked() const { return stops_so_far().first; }

}  // namespace rankc::runtime
