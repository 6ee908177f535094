// SPDX-License-Identifier: Apache-2.0
#include "peer_groups.hpp"
#include "peer_words.cuh"

namespace rankc::runtime::cuda {
namespace {

/// A barrier by one warp, with one thread for each member.
__global__ void __launch_bounds__(warp_size) meet_all(peer_group g, const volatile unsigned* stop) {
  if (g.ranks == 0) return;
  const int member = static_cast<int>(threadIdx.x);
  meeting_words& mine = *g.words[g.place];
  const word meeting = mine.met + 1;
  __syncwarp();
  if (member == g.place) {
    mine.met = meeting;
  } else if (member < g.ranks) {
    __threadfence_system();  // makes the stores of earlier kernels visible before the word
    store_release(&g.words[member]->arrived[g.place], meeting);
    if (!reached(&mine.arrived[member], meeting, stop)) mine.failed = 1;
  }
}

}  // namespace

void meet(const lane& on, const peer_group& g) {
  meet_all<<<1, warp_size, 0, on.stream>>>(g, on.of->stop);
  check(on, cudaGetLastError(), "a meeting of ranks");
}

void load_meeting(const lane& on) {
  meet(on, {});
  check(on, cudaStreamSynchronize(on.stream), "a meeting of ranks: cudaStreamSynchronize");
}

}  // namespace rankc::runtime::cuda
