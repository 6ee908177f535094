// SPDX-License-Identifier: Apache-2.0
// Which pairs of ranks can store into each other's memory, and the words they signal with.
#include "peer_edges.hpp"

#include "check.hpp"

#include <array>

namespace rankc::cuda {
namespace {

constexpr std::array<role, 2> sending{role::to_next, role::to_prev},
    receiving{role::from_prev, role::from_next};

/// The role under which a rank knows the communicator, of two; -1: under neither.
int role_in(const rank& r, int group_index, const std::array<role, 2>& of) {
  for (const role one : of)
    if (r.row->communicator[static_cast<int>(one)] == group_index) return static_cast<int>(one);
  return -1;
}

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

}  // namespace

peer_edges::peer_edges(const description& about, const std::vector<std::unique_ptr<context>>& ranks)
    : edges_(ranks.size() * n_roles), made_(about.communicators.size()) {
  for (const auto& owner : ranks) {
    rank& r = owner->of();
    check(r, cudaSetDevice(owner->device()), "cudaSetDevice");
    edge_words* words = nullptr;
    check(r, cudaMalloc(&words, n_roles * sizeof(edge_words)), "words of pipeline edges: cudaMalloc");
    held_.push_back({owner->device(), words});
    check(r, cudaMemset(words, 0, n_roles * sizeof(edge_words)), "words of pipeline edges: cudaMemset");
    check(r, cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    load_peer_kernels(r);
  }
  for (int g = 0; g < static_cast<int>(made_.size()); ++g) {
    const auto members = about.communicators[static_cast<std::size_t>(g)].ranks;
    if (members.size() != 2) continue;
    for (int first : {0, 1}) {
      const auto a = static_cast<std::size_t>(members[static_cast<std::size_t>(first)]);
      const auto b = static_cast<std::size_t>(members[static_cast<std::size_t>(1 - first)]);
      const int out = role_in(ranks[a]->of(), g, sending), in = role_in(ranks[b]->of(), g, receiving);
      if (out < 0 || in < 0 || !can_map(*ranks[a], *ranks[b])) continue;
      map(*ranks[a], *ranks[b]);
      map(*ranks[b], *ranks[a]);
      peer_edge& sender = edges_[a * n_roles + static_cast<std::size_t>(out)];
      peer_edge& receiver = edges_[b * n_roles + static_cast<std::size_t>(in)];
      sender = {held_[a].words + out, held_[b].words + in};
      receiver = {sender.theirs, sender.mine};
      ranks[a]->of().edges[out] = &sender;
      ranks[b]->of().edges[in] = &receiver;
      made_[static_cast<std::size_t>(g)] = true;
    }
  }
}

peer_edges::~peer_edges() {
  for (const held& h : held_) {
    cudaSetDevice(h.device);
    cudaFree(h.words);
  }
}

}  // namespace rankc::cuda
