// SPDX-License-Identifier: Apache-2.0
// Stands for the barriers in shared memory (mbarrier) of runtime/core/cuda/device/hopper.cuh: a phase ends
// when all arrivals have come and the copies that they expect have landed. A wait names a phase by its parity
// alone. A copy may land before the arrival that expects it.

bit phase[BARRIERS];
byte left[BARRIERS];      // arrivals of this phase
short awaited[BARRIERS];  // copies

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
// The phase of this parity has ended.
#define has_ended(at, parity) (phase[at] != (parity))
