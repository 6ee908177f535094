// SPDX-License-Identifier: Apache-2.0
#include <rankc/launch/board.hpp>

#include "../core/host_name.hpp"
#include <rankc/launch/refusal.hpp>

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
    throw refusal(75, "--launch processes: no memory to share: {}", std::strerror(errno));
  map();
  for (int rank = 0; rank < world; ++rank) new (&slots_[rank]) slot;
}

board::board(int world, int descriptor) : world_(world), memory_(descriptor) { map(); }

void board::map() {
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<int>::is_always_lock_free);
  void* at = mmap(nullptr, sizeof(slot) * static_cast<std::size_t>(world_), PROT_READ | PROT_WRITE,
                  MAP_SHARED, memory_.fd(), 0);
  if (at == MAP_FAILED) throw refusal(75, "the launcher's shared memory: {}", std::strerror(errno));
  slots_ = static_cast<slot*>(at);
}

board::~board() { munmap(slots_, sizeof(slot) * static_cast<std::size_t>(world_)); }

std::string board::end_of(int rank) const {
  const slot& s = slots_[rank];
  const int ended = s.ended.load();
  if (ended == 0) return "";
  const int status = ended - 1;
  if (WIFEXITED(status) && WEXITSTATUS(status) == victim) return "";
  const std::string how =
      WIFSIGNALED(status)
          ? fmt::format("was killed by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)))
          : fmt::format("has ended with code {} and without a word", WEXITSTATUS(status));
  return fmt::format("rank {} ({}, process {}) {} {}", rank, host_name(), s.pid.load(), how,
                     standing_of(s.words).text());
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
