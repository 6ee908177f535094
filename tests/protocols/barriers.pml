// SPDX-License-Identifier: Apache-2.0
// Models the mbarriers in shared memory of runtime/core/cuda/device/hopper.cuh: a phase ends after all its
// arrivals and after the copies that they expect have landed. A wait identifies a phase by its parity alone.
// A copy may land before the arrival that expects it.

bit phase[BARRIERS];
byte left[BARRIERS];      // remaining arrivals of this phase
short awaited[BARRIERS];  // expected copies that have not landed

inline make_barrier(at, arrivals) {
  left[at] = arrivals;
  awaited[at] = 0
}
inline end_phase(at, arrivals) {
  if
  :: left[at] == 0 && awaited[at] == 0 -> phase[at] = 1 - phase[at]; left[at] = arrivals
  :: else
  fi
}
inline arrive_expecting(at, arrivals, copies) {
  assert(left[at] > 0);
  awaited[at] = awaited[at] + copies;
  left[at]--;
  end_phase(at, arrivals)
}
inline arrive(at, arrivals) { arrive_expecting(at, arrivals, 0) }
inline land(at, arrivals) {
  awaited[at]--;
  end_phase(at, arrivals)
}
// Whether the phase with this parity has ended.
#define has_ended(at, parity) (phase[at] != (parity))
