// SPDX-License-Identifier: Apache-2.0
#include "peer_access.hpp"

#include "../device/check.hpp"

namespace rankc::runtime::cuda {

bool can_map(const context& a, const context& b) {
  int there = 0, back = 0;
  return a.device() != b.device() && cudaDeviceCanAccessPeer(&there, a.device(), b.device()) == cudaSuccess &&
         cudaDeviceCanAccessPeer(&back, b.device(), a.device()) == cudaSuccess && there != 0 && back != 0;
}

void map(context& from, const context& other) {
  check(from.of(), cudaSetDevice(from.device()), "cudaSetDevice");
  const cudaError_t status = cudaDeviceEnablePeerAccess(other.device(), 0);
  if (status == cudaErrorPeerAccessAlreadyEnabled) cudaGetLastError();
  else check(from.of(), status, "cudaDeviceEnablePeerAccess");
}

}  // namespace rankc::runtime::cuda
