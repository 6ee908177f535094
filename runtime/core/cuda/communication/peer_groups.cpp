// SPDX-License-Identifier: Apache-2.0
#include "peer_groups.hpp"

#include "../device/check.hpp"
#include "../device/teardown.hpp"
#include "peer_access.hpp"

#include <algorithm>

namespace rankc::runtime::cuda {
namespace {

constexpr std::size_t words_of_group = std::size_t{2} * most_mapped * most_mapped;

/// A rank's link for a communicator; null if members of this kind of communicator do not access each other's
/// memory.
lane_link* mapped_link(rank& r, int group_index) {
  lane_link* const found = r.find_link(group_index);
  const bool is_mapped = found != nullptr && (found->over == over::ep || found->over == over::tp);
  return is_mapped ? found : nullptr;
}

bool all_map(const std::vector<context*>& members) {
  return std::all_of(members.begin(), members.end(), [&](const context* a) {
    return std::all_of(members.begin(), members.end(),
                       [&](const context* b) { return a == b || can_map(*a, *b); });
  });
}

}  // namespace

peer_groups::peer_groups(const description& about, const std::vector<std::unique_ptr<context>>& ranks)
    : parts_(ranks.front()->of(), about.communicators.size() * words_of_group, "words of rows") {
  for (int g = 0; g < static_cast<int>(about.communicators.size()); ++g) {
    std::vector<context*> members;
    for (const int rank : about.communicators[static_cast<std::size_t>(g)].ranks)
      members.push_back(ranks[static_cast<std::size_t>(rank)].get());
    if (members.size() < 2 || members.size() > most_mapped ||
        mapped_link(members.front()->of(), g) == nullptr || !all_map(members))
      continue;
    peer_group seen{.ranks = static_cast<int>(members.size()),
                    .parts = parts_.at(static_cast<std::size_t>(g) * words_of_group)};
    for (std::size_t i = 0; i < members.size(); ++i) {
      for (const context* other : members)
        if (other != members[i]) map(*members[i], *other);
      rank& r = members[i]->of();
      auto& mine = all_.emplace_back(std::make_unique<held>(members[i]->device(), nullptr, peer_group{}));
      check(r, cudaMalloc(&mine->words, sizeof(meeting_words)), "words of meetings: cudaMalloc");
      check(r, cudaMemset(mine->words, 0, sizeof(meeting_words)), "words of meetings: cudaMemset");
      check(r, cudaDeviceSynchronize(), "cudaDeviceSynchronize");
      load_meeting(r[0]);
      seen.arenas[i] = r.arena;
      seen.words[i] = mine->words;
    }
    for (std::size_t i = 0; i < members.size(); ++i) {
      held& mine = *all_[all_.size() - members.size() + i];
      mine.seen = seen;
      mine.seen.place = static_cast<int>(i);
      mapped_link(members[i]->of(), g)->mapped = &mine.seen;
    }
  }
}

peer_groups::~peer_groups() {
  for (const auto& h : all_) {
    check_teardown(cudaSetDevice(h->device), "cudaSetDevice");
    check_teardown(cudaFree(h->words), "words of meetings: cudaFree");
  }
}

}  // namespace rankc::runtime::cuda
