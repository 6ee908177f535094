// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/orderly_stop.hpp>

#include <rankc/launch/say_error.hpp>
#include <rankc/launch/stop_signals.hpp>

#include <atomic>

namespace rankc::runtime {
namespace {

constexpr const char *step_then_save = "the step under way is finished and then saved; one more signal ends "
                                       "the program at once\n",
                     *saving = "a save is under way; one more signal ends the program at once\n";

std::atomic<const char*> on_second = nullptr;  // null: the second signal ends the process
static_assert(std::atomic<const char*>::is_always_lock_free);

void act_on_stop(int signal, int times) {
  if (times == 1) return;
  const char* line = on_second;
  if (times == 2 && line != nullptr) return write_error(line);
  end_by(signal);
}

}  // namespace

orderly_stop::orderly_stop(bool saves, bool speaks) : speaks_(speaks) {
  on_second = !saves ? nullptr : speaks ? step_then_save : "";
  take_stop_signals(act_on_stop);
}

int orderly_stop::asked() const { return stops_so_far().first; }

void orderly_stop::now_saves() const {
  if (speaks_) on_second = saving;
}

}  // namespace rankc::runtime
