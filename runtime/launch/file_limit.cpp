// SPDX-License-Identifier: Apache-2.0
#include <rankc/launch/file_limit.hpp>

#include <rankc/runtime/failure.hpp>

#include <sys/resource.h>

namespace rankc::runtime {

namespace {

constexpr rlim_t for_all_else = 48;  // data, checkpoints, libraries, and clients that are not ranks

}  // namespace

void raise_file_limit(int connections) {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  const rlim_t needed = static_cast<rlim_t>(connections) + for_all_else;
  if (files.rlim_max != RLIM_INFINITY && files.rlim_max < needed)
    throw failure(1,
                  "RC5367: this process may have {} files open (ulimit -Hn); with connections to {} ranks it "
                  "needs {}: raise the limit, or use fewer ranks",
                  files.rlim_max, connections, needed);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
}

}  // namespace rankc::runtime
