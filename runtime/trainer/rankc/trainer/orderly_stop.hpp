// SPDX-License-Identifier: Apache-2.0
// A run that is told to stop finishes its step, and loses nothing that it was to save.
#pragma once

namespace rankc::runtime {

class orderly_stop {
 public:
  /// From here to the end of the process: the first signal asks the run to stop. Where the run saves, the
  /// second says (`speaks`: to standard error) that a save is coming, and the third ends the process. Where
  /// it does not, the second ends it.
  orderly_stop(bool saves, bool speaks);

  /// The signal that has come; 0: none.
  int asked() const;
  /// From here on the second signal says that a save is under way.
  void now_saves() const;

 private:
  bool speaks_;
};

}  // namespace rankc::runtime
