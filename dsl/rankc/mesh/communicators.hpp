// SPDX-License-Identifier: Apache-2.0
// The communicators that a layout needs: one for every distinct shape of groups, none of size 1, made in one order that
// all ranks follow. Each is one split of the world (colour `groups.first(rank)`, key `groups.place(rank)`).
#pragma once
#include <rankc/mesh/layout.hpp>

namespace rankc {

/// What is communicated over an alias, in the order in which communicators are made.
struct communicator_purpose {
  alias over;
  std::string_view what;
};
inline constexpr communicator_purpose communicator_purposes[]{{alias::pp, "activations between stages"},
                                                              {alias::replicas, "gradients of replicated weights"},
                                                              {alias::fsdp, "shards of weights and gradients"},
                                                              {alias::loss, "loss and token counts"},
                                                              {alias::ring, "keys and values"},
                                                              {alias::ulysses, "heads"},
                                                              {alias::tp, "activations of tensor-parallel regions"},
                                                              {alias::expert_replicas, "gradients of replicated experts"},
                                                              {alias::efsdp, "shards of experts"},
                                                              {alias::ep, "tokens to their experts"},
                                                              {alias::etp, "activations of tensor-parallel experts"}};

struct planned_communicator {
  group_shape groups;
  std::vector<communicator_purpose> serves;
};

/// Equal groups of two views share a communicator. With `tied_embeddings` the ends of the pipeline have one.
/// Experts' communicators are planned where `experts` says that the model has some.
constexpr std::vector<planned_communicator> plan_communicators(const layout& l, bool experts, bool tied_embeddings) {
  std::vector<planned_communicator> out;
  auto add = [&](const communicator_purpose& c) {
    const group_shape g = l.groups(c.over);
    if (g.size() == 1) return;
    for (planned_communicator& p : out)
      if (p.groups == g) {
        p.serves.push_back(c);
        return;
      }
    out.push_back({g, {c}});
  };
  for (const communicator_purpose& c : communicator_purposes) {
    const bool of_experts = c.over == alias::expert_replicas || c.over == alias::efsdp || c.over == alias::ep || c.over == alias::etp;
    if (experts || !of_experts) add(c);
  }
  if (tied_embeddings) add({alias::embedding, "tied embeddings"});
  return out;
}

/// The calls that make them if every group is a communicator of its own.
constexpr int count_groups(const layout& l, const std::vector<planned_communicator>& plan) {
  int n = 0;
  for (const planned_communicator& p : plan) n += p.groups.count(l.ranks());
  return n;
}

}  // namespace rankc
