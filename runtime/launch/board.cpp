// SPDX-License-Identifier: Apache-2.0
#include <rankc/launch/board.hpp>

#include "../core/host_name.hpp"
#include "watch.hpp"
#include <rankc/runtime/failure.hpp>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <thread>

namespace rankc::runtime {
namespace {

constexpr int victim = 77;

}  // namespace

board::board(int world) : world_(world), memory_(memfd_create("rankc", MFD_CLOEXEC)) {
  const auto bytes = static_cast<off_t>(sizeof(slot) * static_cast<std::size_t>(world));
  if (!memory_ || ftruncate(memory_.fd(), bytes) != 0)
    throw failure(75, "RC5300: --launch processes: shared memory could not be made: {}",
                  std::strerror(errno));
  map();
  for (int rank = 0; rank < world; ++rank) new (&slots_[rank]) slot;
}

board::board(int world, int descriptor) : world_(world), memory_(descriptor) { map(); }

void board::map() {
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<int>::is_always_lock_free);
  void* at = mmap(nullptr, sizeof(slot) * static_cast<std::size_t>(world_), PROT_READ | PROT_WRITE,
                  MAP_SHARED, memory_.fd(), 0);
  if (at == MAP_FAILED)
    throw failure(75, "RC5301: the launcher's shared memory cannot be mapped: {}", std::strerror(errno));
  slots_ = static_cast<slot*>(at);
}

board::~board() { munmap(slots_, sizeof(slot) * static_cast<std::size_t>(world_)); }

std::string board::end_of(int rank) const {
  const slot& s = slots_[rank];
  const int ended = s.ended.load();
  if (ended == 0) return "";
  const int status = ended - 1;
  if (WIFEXITED(status) && WEXITSTATUS(status) == victim) return "";
  const auto process = s.pid.load();
  const std::string where = text_of(position_of(s.words));
  if (WIFSIGNALED(status))
    return say("RC5302: rank {} ({}, process {}) was killed by signal {} ({}) {}", rank, host_name(), process,
               WTERMSIG(status), strsignal(WTERMSIG(status)), where);
  return say("RC5303: rank {} ({}, process {}) ended with code {} and no error report {}", rank, host_name(),
             process, WEXITSTATUS(status), where);
}

std::string wait_for_end(const board& b, int rank, int patience) {
  for (int waited = 0; !b.has_ended(rank) && waited < patience; ++waited)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::string all = b.end_of(rank);
  for (int other = 0; other < b.world() && !all.empty(); ++other)
    if (const std::string its = other == rank ? "" : b.end_of(other); !its.empty()) all += "; and " + its;
  return all;
}

}  // namespace rankc::runtime
