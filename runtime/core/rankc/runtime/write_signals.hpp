// SPDX-License-Identifier: Apache-2.0
// Turns writes whose signal would end the process into errors of the write.
#pragma once
#include <csignal>
#include <initializer_list>

namespace rankc::runtime {

/// Makes a write to a pipe without a reader fail with EPIPE, and a write past the file-size limit with EFBIG.
inline void fail_writes_without_signals() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace rankc::runtime
