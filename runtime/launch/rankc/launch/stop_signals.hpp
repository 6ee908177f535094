// SPDX-License-Identifier: Apache-2.0
// The signals that ask a program to stop: SIGINT, SIGTERM, SIGHUP (the terminal is gone), SIGUSR1 (Slurm's
// --signal) and SIGXCPU (the limit on processor time).
#pragma once

namespace rankc::runtime {

/// What is done about a signal that counts, in its handler; `times`: how many have counted, this one
/// included.
using on_stop = void (*)(int signal, int times);

/// Count these signals from here to the end of the process. Signals within a second count as one: `timeout`
/// signals its child and then the child's group. SIGXCPU, which comes every second, counts if it is the
/// first. SIGHUP stays ignored where it is, as under nohup.
void take_stop_signals(on_stop act = nullptr);

/// What they do to a process that does not take them.
void release_stop_signals();

/// What has come so far.
struct stops {
  int first;  // signal; 0: none
  int last;   // that counted
  int times;
};
stops stops_so_far();

/// End the process by a signal, at once.
void end_by(int signal);

/// "SIGTERM"
const char* stop_signal_name(int signal);

}  // namespace rankc::runtime
