// SPDX-License-Identifier: Apache-2.0
// Small programs for the engine's tests: the tables of generated code, for ranks that differ in one
// coordinate, with the four regions, the tokens and space for values at fixed places.
#pragma once
#include <rankc/runtime/cuda/kernels.hpp>

#include <vector>

namespace rankc::runtime::cuda::test {

inline constexpr int parameters = 64, n_microbatches = 2, n_rows = 2, n_seq = 8;
inline constexpr at weights{0}, gradients{1024}, first_moment{2048}, second_moment{3072}, token_ids{4096},
    target_ids{5120}, loss_at{6144}, norm_at{6400}, values{8192};
inline constexpr std::size_t test_arena = 65536;
inline constexpr range all_parameters[]{{0, parameters, true}};

/// The lanes of every rank; the last one only if a test asks for it.
enum : int { compute, reduce, to_next, from_prev, to_prev, from_next, overlap };
inline constexpr lane_row all_lanes[]{{"compute", true},    {"reduce", false},  {"to_next", false},
                                      {"from_prev", false}, {"to_prev", false}, {"from_next", false},
                                      {"overlap", true}};

/// Owns the tables of a description.
struct tables {
  std::vector<layout> layouts;
  std::vector<rank_row> rows;
  std::vector<std::vector<lane_communicator>> links;  // by rank
  std::vector<std::vector<int>> members;
  std::vector<communicator> communicators;
  description about{};

  tables(int pp, int dp) {
    for (int p = 0; p < pp; ++p)
      layouts.push_back({.arena_bytes = test_arena,
                         .weights = weights,
                         .gradients = gradients,
                         .first_moment = first_moment,
                         .second_moment = second_moment,
                         .working_copy = {},
                         .parameter_count = parameters,
                         .parameters = {},
                         .ropes = {},
                         .tokens = token_ids,
                         .targets = target_ids,
                         .reads_tokens = true,
                         .reads_targets = true,
                         .loss = loss_at,
                         .norm = norm_at,
                         .events = 4,
                         .lanes = std::span(all_lanes).first(overlap)});
    for (int p = 0; p < pp; ++p)
      for (int d = 0; d < dp; ++d) rows.push_back({.pp = p, .dp = d, .tp = 0, .links = {}});
    links.resize(rows.size());
    about = {.interface_version = interface_version,
             .name = "tables",
             .plan_hash = 0,
             .type = dtype::f32,
             .pp = pp,
             .dp = dp,
             .tp = 1,
             .microbatches = n_microbatches,
             .rows = n_rows,
             .seq = n_seq,
             .vocab = 4,
             .vocab_used = 4,
             .flops_per_token = 0,
             .peak_flops = 0,
             .deterministic = false,
             .train = {},
             .layouts = layouts,
             .ranks = rows,
             .communicators = {},
             .text = "",
             .json = ""};
  }

  /// Add a communicator of `ranks`, on lane lanes[i] of rank ranks[i].
  void connect(const char* name, std::vector<int> ranks, const std::vector<int>& lanes, over what) {
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      auto& of = links[static_cast<std::size_t>(ranks[i])];
      of.push_back({lanes[i], what, static_cast<int>(communicators.size())});
      rows[static_cast<std::size_t>(ranks[i])].links = of;
    }
    members.push_back(std::move(ranks));
    communicators.push_back({.name = name, .ranks = {}});
    for (std::size_t i = 0; i < members.size(); ++i) communicators[i].ranks = members[i];
    about.communicators = communicators;
  }
};

}  // namespace rankc::runtime::cuda::test
