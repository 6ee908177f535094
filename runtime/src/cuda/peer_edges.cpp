// SPDX-License-Identifier: Apache-2.0
// Which pairs of ranks can store into each other's memory, and the words they signal with.
#include "peer_edges.hpp"

#include "check.hpp"
#include "peer_access.hpp"

namespace rankc::cuda {
namespace {

/// The lane on which a rank has a communicator over `peer`; -1: on none.
int lane_of(const rank& r, int group_index) {
  for (const lane& on : r.all_lanes)
    for (const lane_link& k : on.links)
      if (k.over == over::peer && k.communicator == group_index) return on.index;
  return -1;
}

/// The end of an edge on a lane: a lane has one communicator over `peer` at most.
void give(rank& r, int lane_index, int place, const peer_edge& e) {
  for (lane_link& k : r.all_lanes[static_cast<std::size_t>(lane_index)].links)
    if (k.over == over::peer) k.place = place, k.edge = &e;
}

}  // namespace

peer_edges::peer_edges(const description& about, const std::vector<std::unique_ptr<context>>& ranks)
    : edges_(ranks.size()), made_(about.communicators.size()) {
  for (const auto& owner : ranks) {
    rank& r = owner->of();
    check(r, cudaSetDevice(owner->device()), "cudaSetDevice");
    const std::size_t lanes = r.all_lanes.size();
    edges_[held_.size()].resize(lanes);
    edge_words* words = nullptr;
    check(r, cudaMalloc(&words, lanes * sizeof(edge_words)), "words of pipeline edges: cudaMalloc");
    held_.push_back({owner->device(), words});
    check(r, cudaMemset(words, 0, lanes * sizeof(edge_words)), "words of pipeline edges: cudaMemset");
    check(r, cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    load_peer_kernels(r[0]);
  }
  for (int g = 0; g < static_cast<int>(made_.size()); ++g) {
    const auto members = about.communicators[static_cast<std::size_t>(g)].ranks;
    if (members.size() != 2) continue;
    const auto a = static_cast<std::size_t>(members[0]), b = static_cast<std::size_t>(members[1]);
    const int out = lane_of(ranks[a]->of(), g), in = lane_of(ranks[b]->of(), g);
    if (out < 0 || in < 0 || !can_map(*ranks[a], *ranks[b])) continue;
    map(*ranks[a], *ranks[b]);
    map(*ranks[b], *ranks[a]);
    peer_edge& sender = edges_[a][static_cast<std::size_t>(out)];
    peer_edge& receiver = edges_[b][static_cast<std::size_t>(in)];
    sender = {held_[a].words + out, held_[b].words + in};
    receiver = {sender.theirs, sender.mine};
    give(ranks[a]->of(), out, 0, sender);
    give(ranks[b]->of(), in, 1, receiver);
    made_[static_cast<std::size_t>(g)] = true;
  }
}

peer_edges::~peer_edges() {
  for (const held& h : held_) {
    cudaSetDevice(h.device);
    cudaFree(h.words);
  }
}

}  // namespace rankc::cuda
