// SPDX-License-Identifier: Apache-2.0
// A step that can be made to fail on the device.
#pragma once
#include <rankc/runtime/cuda/rank.hpp>

namespace rankc::cuda::test {

/// Enqueue a kernel that stops the GPU with an error where the first token is 1.
void fault_if_asked(rank&);

}  // namespace rankc::cuda::test
