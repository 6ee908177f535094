// SPDX-License-Identifier: Apache-2.0
#include "peer_edges.hpp"

#include "../device/check.hpp"
#include "peer_access.hpp"

#include <string>

namespace rankc::runtime::cuda {
namespace {

/// A rank's link over `peer` for a communicator; null without one.
lane_link* find_link(rank& r, int group_index) {
  lane_link* const found = r.find_link(group_index);
  return found != nullptr && found->over == over::peer ? found : nullptr;
}

}  // namespace

peer_edges::peer_edges(const description& about, const std::vector<std::unique_ptr<context>>& ranks)
    : words_(ranks.front()->of(), 2 * about.communicators.size(), "words of pipeline edges"),
      edges_(about.communicators.size()) {
  for (int g = 0; g < static_cast<int>(edges_.size()); ++g) {
    const auto members = about.communicators[static_cast<std::size_t>(g)].ranks;
    if (members.size() != 2) continue;
    context &sender = *ranks[static_cast<std::size_t>(members[0])],
            &receiver = *ranks[static_cast<std::size_t>(members[1])];
    lane_link *out = find_link(sender.of(), g), *in = find_link(receiver.of(), g);
    if (out == nullptr || in == nullptr || !can_map(sender, receiver)) continue;
    map(sender, receiver);
    const auto first = 2 * static_cast<std::size_t>(g);
    peer_edge* const made = (edges_[static_cast<std::size_t>(g)] = std::make_unique<peer_edge>(
                                 peer_edge{words_.at(first), words_.at(first + 1), {}}))
                                .get();
    out->place = 0;
    out->edge = made;
    in->place = 1;
    in->edge = made;
  }
}

void send_to_peer(const lane& on, const peer_edge& e, message m, const std::byte* from, std::size_t bytes) {
  if (on.of->alone) return;
  const auto place = e.places.find({on.of->evaluates, m.index});
  if (place == e.places.end())
    fail(on, "RC5123: \"{}\" cannot be sent: the rank that receives it has no buffer for it", m.name);
  take_word(on, e.is_free);
  check(on, cudaMemcpyAsync(place->second, from, bytes, cudaMemcpyDefault, on.stream), m.name);
  write_word(on, e.is_there, 1);
}

void receive_from_peer(const lane& on, peer_edge& e, message m, std::byte* to) {
  if (on.of->alone) {
    e.places[{on.of->evaluates, m.index}] = to;
    return;
  }
  write_word(on, e.is_free, 1);
  take_word(on, e.is_there);
}

}  // namespace rankc::runtime::cuda
