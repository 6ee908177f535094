// SPDX-License-Identifier: Apache-2.0
// Packing of the blocks that ranks send in an all-to-all, and unpacking of those that they receive.
#pragma once
#include <rankc/runtime/cuda/rank.hpp>
#include <rankc/runtime/head_exchange.hpp>

namespace rankc::runtime::cuda {

/// to[i] = from[by.sent(i)], in the order of blocks.
template <class T>
void put_into_blocks(const lane&, T* to, const T* from, const runtime::head_exchange& by);

/// to[by.arrived(i)] = from[i].
template <class T>
void take_from_blocks(const lane&, T* to, const T* from, const runtime::head_exchange& by);

}  // namespace rankc::runtime::cuda
