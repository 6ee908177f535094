// SPDX-License-Identifier: Apache-2.0
// The addition of a bias gradient to what is there.
#include "linear_sums.hpp"

#include "device.cuh"

namespace rankc::cuda {
namespace {

constexpr int block = 256;

__global__ void add_sums_to(float* db, const float* sums, int width) {
  const int i = blockIdx.x * block + threadIdx.x;
  if (i < width) db[i] += sums[i];
}

}  // namespace

void add_sums(rank& r, float* db, const float* sums, int width) {
  launch(r, "add_sums", add_sums_to, ceil_div(width, block), block, 0, db, sums, width);
}

}  // namespace rankc::cuda
