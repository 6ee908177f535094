// SPDX-License-Identifier: Apache-2.0
// A step that can be made to fail on the device.
#pragma once
#include <rankc/runtime/cuda/rank.hpp>

namespace rankc::runtime::cuda::test {

/// Enqueue a kernel that stops the GPU with an error if the step has a learning rate.
void fault_if_asked(rank&);

}  // namespace rankc::runtime::cuda::test
