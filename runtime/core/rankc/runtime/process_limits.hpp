// SPDX-License-Identifier: Apache-2.0
// The memory that this process uses, and the limits of its shell.
#pragma once
#include <sys/resource.h>
#include <unistd.h>
#include <cstddef>
#include <fstream>
#include <string>

namespace rankc::runtime {

/// True if the process has a limit; `which` is RLIMIT_AS or another resource of getrlimit.
inline bool has_limit(int which, rlimit& limit) {
  return ::getrlimit(which, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

/// A clause for messages.
/// Units: bytes of address space.
inline std::string memory_text() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  std::string text =
      "this process has " + std::to_string(pages * static_cast<std::size_t>(::getpagesize())) + " bytes";
  rlimit limit{};
  if (has_limit(RLIMIT_AS, limit)) text += ", and ulimit -v allows " + std::to_string(limit.rlim_cur);
  if (has_limit(RLIMIT_DATA, limit)) text += ", and ulimit -d allows " + std::to_string(limit.rlim_cur);
  return text;
}

}  // namespace rankc::runtime
