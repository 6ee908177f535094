// SPDX-License-Identifier: Apache-2.0
// Orderly stop: a run that gets a signal finishes its step, and completes the saves that are due.
#pragma once

namespace rankc::runtime {

class orderly_stop {
 public:
  /// From here to the end of the process, the first signal asks the run to stop. If the run saves, the
  /// process that `speaks` answers the second signal with a line, and the third ends the process. If the run
  /// does not save, the second ends the process.
  orderly_stop(bool saves, bool speaks);

  /// The signal that has arrived; 0: none.
  int asked() const;
};

}  // namespace rankc::runtime
