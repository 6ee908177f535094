// SPDX-License-Identifier: Apache-2.0
#include "waiting_blocks.hpp"

#include "../device/check.hpp"
#include "communicators.hpp"

#include <algorithm>

namespace rankc::runtime::cuda {
namespace {

int waiting_blocks(const lane& on) {
  int most = 0;
  for (const lane_link& k : on.links)
    if (k.edge == nullptr) most = std::max(most, most_blocks_of(k.over, on.computes()));
  return most;
}

}  // namespace

int waiting_blocks(const rank& r) {
  int all = 0;
  for (const lane& on : r.all_lanes) all += waiting_blocks(on);
  return all;
}

void check_room(const context& owner) {
  const rank& r = owner.of();
  const int waiting = waiting_blocks(r);
  int multiprocessors = 0;
  check(r, cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, owner.device()),
        "cudaDeviceGetAttribute");
  if (waiting == 0 || waiting + least_free <= multiprocessors) return;
  throw failure(
      1,
      "RC5140: rank {} may have {} blocks that wait for other ranks at once, and {} multiprocessors must "
      "be free for other kernels; its GPU has {}: take a plan with fewer lanes, or a larger GPU",
      r.index, waiting, least_free, multiprocessors);
}

}  // namespace rankc::runtime::cuda
