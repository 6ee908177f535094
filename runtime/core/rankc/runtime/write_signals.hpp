// SPDX-License-Identifier: Apache-2.0
// Writes that a signal would end the process for become errors of the write.
#pragma once
#include <csignal>
#include <initializer_list>

namespace rankc::runtime {

/// From here on a write to a pipe without a reader fails with EPIPE, and one past the limit on a file's size
/// with EFBIG.
inline void fail_writes_without_signals() {
  for (const int signal : {SIGPIPE, SIGXFSZ}) std::signal(signal, SIG_IGN);
}

}  // namespace rankc::runtime
