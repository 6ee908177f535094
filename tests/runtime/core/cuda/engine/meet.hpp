// SPDX-License-Identifier: Apache-2.0
// Kernels of one thread that show whether two lanes run at once: a rendezvous, and a long delay.
#pragma once
#include <rankc/runtime/cuda/rank.hpp>

namespace rankc::runtime::cuda::test {

/// Block the lane until a second such kernel runs with the same `counter`, which starts at 0. `met` becomes
/// 1, or 0 if no other kernel came within half a second.
/// Shapes: counter: one word; met: one float.
void meet(const lane&, at counter, at met);

/// Keep the lane busy.
void spin(const lane&, int microseconds);

}  // namespace rankc::runtime::cuda::test
