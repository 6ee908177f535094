// SPDX-License-Identifier: Apache-2.0
// GPUs of one process that map each other's memory, so that an address is valid on both.
#pragma once
#include <rankc/runtime/cuda/context.hpp>

namespace rankc::runtime::cuda {

/// True if each of two GPUs can map the other's memory.
bool can_map(const context&, const context&);

/// Maps the memory of `other` into the GPU of `from`.
/// Errors: failure (70) that names the rank.
void map(context& from, const context& other);

}  // namespace rankc::runtime::cuda
