// SPDX-License-Identifier: Apache-2.0
// Tokens in documents: the position of each token in its document, and the first key that it sees.
#pragma once
#include "device.cuh"

#include <rankc/runtime/ring_step.hpp>

namespace rankc::runtime::cuda {

/// The position in its document of each of a rank's tokens, for whole sequences or chunks of them.
struct rows_in_documents {
  const std::int32_t* starts;  // (rows, seq)
  runtime::chunks has;
  int first;  // index of the first token among all tokens of the rank
  /// `first` is the index among the tokens of all ranks.
  static rows_in_documents of(const std::int32_t* starts, const runtime::chunks& has, int rows, int first) {
    return {starts, has, first - has.rank * rows * has.count()};
  }
  __device__ int row_of(int n) const {
    const int place = first + n, position = has.position(place % has.count());
    return position - starts[static_cast<std::size_t>(place / has.count()) * has.seq + position];
  }
};

/// An order of queries and keys in which a query sees no key before its document.
template <class Order>
struct within_documents : Order {
  const std::int32_t* starts;  // (rows, seq)
  runtime::chunks has;         // the queries
  __device__ int first_key(int query, int row) const {
    if (query >= has.count()) return 0;
    return Order::first_from(starts[static_cast<std::size_t>(row) * has.seq + has.position(query)]);
  }
};

}  // namespace rankc::runtime::cuda
