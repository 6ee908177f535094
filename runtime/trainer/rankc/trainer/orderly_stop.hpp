// SPDX-License-Identifier: Apache-2.0
// A run that is told to stop finishes its step, and loses nothing that it was to save.
#pragma once

namespace rankc::runtime {

class orderly_stop {
 public:
  /// From here to the end of the process: the first signal asks the run to stop. Where the run saves, the
  /// second is answered with a line, by the process that `speaks`, and the third ends the process. Where it
  /// does not save, the second ends the process.
  orderly_stop(bool saves, bool speaks);

  /// The signal that has come; 0: none.
  int asked() const;
};

}  // namespace rankc::runtime
