// SPDX-License-Identifier: Apache-2.0
// GPUs of one process that map each other's memory: an address of one is an address of the other.
#pragma once
#include <rankc/runtime/cuda/context.hpp>

namespace rankc::runtime::cuda {

/// Whether each of two GPUs can map the other's memory.
bool can_map(const context&, const context&);

/// Errors: failure (70) naming the rank.
void map(context& from, const context& other);

}  // namespace rankc::runtime::cuda
