// SPDX-License-Identifier: Apache-2.0
// A kernel that waits for other ranks occupies its blocks until they have come. All kernels of a rank that
// may wait at once must fit on its GPU, together with the kernels for which other ranks wait.
#pragma once
#include <rankc/runtime/cuda/context.hpp>

namespace rankc::runtime::cuda {

/// The multiprocessors that must be free for kernels that wait for no rank. The two blocks of a Hopper
/// cluster start on one GPC. With 9 free multiprocessors on 8 GPCs, two share a GPC.
inline constexpr int least_free = 9;

/// The blocks of kernels that may wait for other ranks at once. A lane runs one communication at a time.
/// Messages of copy engines have no blocks.
int waiting_blocks(const rank&);

/// Checks that the GPU has one multiprocessor for each of these blocks, and least_free others.
/// Errors: failure (1).
void check_room(const context&);

}  // namespace rankc::runtime::cuda
