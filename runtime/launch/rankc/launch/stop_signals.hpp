// SPDX-License-Identifier: Apache-2.0
// The signals that ask a program to stop: SIGINT, SIGTERM, SIGHUP (the terminal is gone), SIGUSR1 (Slurm's
// --signal) and SIGXCPU (the limit on processor time).
#pragma once

namespace rankc::runtime {

/// Called in the signal handler for each signal that counts. `times`: how many have counted, including this
/// one.
using on_stop = void (*)(int signal, int times);

/// Count these signals from now to the end of the process. Signals within a second count as one, because
/// `timeout` signals its child and then the child's group. SIGXCPU, which comes every second, counts only if
/// it is the first. SIGHUP stays ignored if it is ignored, as under nohup.
void take_stop_signals(on_stop act = nullptr);

/// Restore the signals' default actions.
void release_stop_signals();

/// The signals counted so far.
struct stops {
  int first;  // the first signal; 0: none
  int last;   // the last signal that counted
  int times;
};
stops stops_so_far();

/// End the process by a signal, at once.
void end_by(int signal);

/// The name of a signal: "SIGTERM".
const char* stop_signal_name(int signal);

}  // namespace rankc::runtime
