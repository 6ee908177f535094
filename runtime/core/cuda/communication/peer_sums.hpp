// SPDX-License-Identifier: Apache-2.0
// Collectives that computation waits for, for ranks whose GPUs map each other's memory. Kernels on all
// multiprocessors read and write the other arenas.
#pragma once
#include "peer_groups.hpp"

namespace rankc::runtime::cuda {

/// A reduce-scatter: this rank's part of the sum. Terms are added in the order of the ranks, in f32, with one
/// rounding.
/// Shapes: from (ranks, count) at one offset of every arena, to (count).
template <class T>
void sum_of_peers(const lane&, const peer_group&, T* to, const T* from, std::size_t count);

/// The terms of a sum, in the order of the ranks.
template <class T>
struct sum_terms {
  const T* of[most_mapped]{};
  int count = 0;
};

/// The sum of the terms, in f32, with one rounding.
/// Shapes: each term and to (count); to may be one of the terms.
template <class T>
void sum_up(const lane&, T* to, const sum_terms<T>&, std::size_t count);

/// An all-gather, in the order of the ranks.
/// Shapes: from (count) at one offset of every arena, to (ranks, count).
template <class T>
void gather_from_peers(const lane&, const peer_group&, T* to, const T* from, std::size_t count);

/// An all-reduce: each rank computes a part of the sum.
/// Shapes: data (count) at one offset of every arena.
template <class T>
void sum_among_peers(const lane&, const peer_group&, T* data, std::size_t count);

}  // namespace rankc::runtime::cuda
