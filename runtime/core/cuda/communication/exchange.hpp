// SPDX-License-Identifier: Apache-2.0
// What ranks send each other in an all-to-all: put into blocks, and put where it belongs.
#pragma once
#include <rankc/runtime/cuda/rank.hpp>
#include <rankc/runtime/head_exchange.hpp>

namespace rankc::runtime::cuda {

/// to[i] = from[by.sent(i)], block after block.
template <class T>
void put_into_blocks(const lane&, T* to, const T* from, const runtime::head_exchange& by);

/// to[by.arrived(i)] = from[i].
template <class T>
void take_from_blocks(const lane&, T* to, const T* from, const runtime::head_exchange& by);

}  // namespace rankc::runtime::cuda
