// SPDX-License-Identifier: Apache-2.0
// Scratch of each kernel, in bytes. The generator allocates it, the equivalence check requires it, and the
// kernels use no more. attention_scratch.hpp has the scratch of attention on a GPU.
#pragma once
#include <rankc/contract/router.hpp>
#include <rankc/contract/targets.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace rankc::runtime {

/// The scratch of the arrangement with a capacity limit: the number of tokens of each expert in each group,
/// and the number of groups, as i32.
constexpr std::size_t limited_arrangement_scratch(std::size_t groups, std::size_t experts) {
  return (groups * experts + 1) * sizeof(std::int32_t);
}

namespace host {

/// The number of queries whose scores attention computes at once.
inline constexpr int query_block = 128;

/// The scores of one block of queries in one head, each for at most `window` keys (0: for all keys).
/// `element` is the size of an activation in bytes.
constexpr std::size_t attention_scratch(std::size_t queries, std::size_t keys, std::size_t element,
                                        std::size_t window = 0) {
  const std::size_t block = std::min(queries, std::size_t{query_block});
  return block * (window > 0 ? std::min(keys, window + block - 1) : keys) * element;
}
/// A block's scores, their gradients, and one sum per query of the head.
constexpr std::size_t attention_grad_scratch(std::size_t queries, std::size_t keys, std::size_t element,
                                             std::size_t window = 0) {
  return 2 * attention_scratch(queries, keys, element, window) + queries * element;
}
/// The router statistics, summed in f64.
constexpr std::size_t statistics_scratch(std::size_t experts) {
  return kinds_of_statistics * experts * sizeof(double);
}

}  // namespace host

namespace cuda {

/// The router statistics of each block, summed in f32.
constexpr std::size_t statistics_scratch(std::size_t experts) {
  return std::size_t{blocks_of_statistics} * kinds_of_statistics * experts * sizeof(float);
}

}  // namespace cuda
}  // namespace rankc::runtime
