// SPDX-License-Identifier: Apache-2.0
// A kernel that waits for other ranks keeps its blocks until they have come. All kernels of a rank that may
// wait at once must find room on its GPU, together with the kernels that other ranks wait for.
#pragma once
#include <rankc/runtime/cuda/context.hpp>

namespace rankc::runtime::cuda {

/// Multiprocessors that must be free for kernels that wait for no rank. The two blocks of a Hopper cluster
/// start on one GPC; of 9 free multiprocessors on 8 GPCs two share one.
inline constexpr int least_free = 9;

/// The blocks of kernels that may wait for other ranks at once: a lane runs one communication at a time.
/// Messages that copy engines carry have none.
int waiting_blocks(const rank&);

/// Errors: failure (1) where the GPU has no room for them, a multiprocessor each, and for least_free others.
void check_room(const context&);

}  // namespace rankc::runtime::cuda
