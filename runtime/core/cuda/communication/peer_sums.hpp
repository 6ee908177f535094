// SPDX-License-Identifier: Apache-2.0
// Collectives that computation waits for, of ranks whose GPUs map each other: kernels on all multiprocessors
// read and write the other arenas.
#pragma once
#include "peer_groups.hpp"

namespace rankc::runtime::cuda {

/// This rank's part of the sum of what all have: terms in the order of the ranks, in f32, rounded once.
/// Shapes: from (ranks, count) at one place of every arena, to (count).
template <class T>
void sum_of_peers(const lane&, const peer_group&, T* to, const T* from, std::size_t count);

/// Terms of a sum, in the order of the ranks.
template <class T>
struct sum_terms {
  const T* of[most_mapped]{};
  int count = 0;
};

/// Their sum, in f32, rounded once. Shapes: each and to (count); to may be one of them.
template <class T>
void sum_up(const lane&, T* to, const sum_terms<T>&, std::size_t count);

/// What each rank has, in the order of the ranks. Shapes: from (count) at one place of every arena, to
/// (ranks, count).
template <class T>
void gather_from_peers(const lane&, const peer_group&, T* to, const T* from, std::size_t count);

/// Everywhere the sum of what all have: each rank makes a part of it. Shapes: data (count) at one place of
/// every arena.
template <class T>
void sum_among_peers(const lane&, const peer_group&, T* data, std::size_t count);

}  // namespace rankc::runtime::cuda
