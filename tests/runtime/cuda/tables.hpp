// SPDX-License-Identifier: Apache-2.0
// Small programs for the engine's tests: the tables that generated code would hold, for ranks that differ in
// one coordinate, with the four regions, the tokens and room for values at fixed places.
#pragma once
#include <rankc/runtime/cuda/kernels.hpp>

#include <vector>

namespace rankc::cuda::test {

inline constexpr int parameters = 64, n_microbatches = 2, n_rows = 2, n_seq = 8;
inline constexpr at weights{0}, gradients{1024}, first_moment{2048}, second_moment{3072}, token_ids{4096},
    target_ids{5120}, loss_at{6144}, norm_at{6400}, values{8192};
inline constexpr std::size_t test_arena = 65536;
inline constexpr range all_parameters[]{{0, parameters, true}};

/// Owns the tables of a description.
struct tables {
  std::vector<layout> layouts;
  std::vector<rank_row> rows;
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
                         .events = 4});
    for (int p = 0; p < pp; ++p)
      for (int d = 0; d < dp; ++d)
        rows.push_back({.pp = p, .dp = d, .tp = 0, .communicator = {-1, -1, -1, -1, -1, -1, -1, -1, -1}});
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

  /// A communicator over `ranks`, known to rank ranks[i] as roles[i].
  void connect(const char* name, std::vector<int> ranks, const std::vector<role>& roles) {
    for (std::size_t i = 0; i < ranks.size(); ++i)
      rows[static_cast<std::size_t>(ranks[i])].communicator[static_cast<int>(roles[i])] =
          static_cast<int>(communicators.size());
    members.push_back(std::move(ranks));
    communicators.push_back({.name = name, .ranks = {}});
    for (std::size_t i = 0; i < members.size(); ++i) communicators[i].ranks = members[i];
    about.communicators = communicators;
  }
};

}  // namespace rankc::cuda::test
