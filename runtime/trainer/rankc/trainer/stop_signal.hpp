// SPDX-License-Identifier: Apache-2.0
// SIGTERM and SIGINT ask a run to stop after the step under way; the second one ends it at once.
#pragma once

namespace rankc::runtime {

class stop_signal {
 public:
  /// From here on, until this goes, the two signals are taken down.
  stop_signal();
  ~stop_signal();
  stop_signal(const stop_signal&) = delete;

  /// The signal that has come; 0: none.
  int asked() const;
  /// "SIGTERM"
  static const char* name(int signal);
};

}  // namespace rankc::runtime
