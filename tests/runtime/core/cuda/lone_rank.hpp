// SPDX-License-Identifier: Apache-2.0
// The tables of a program of one rank with an empty arena: the minimum that a context needs to test or time a
// single kernel.
#pragma once
#include <rankc/runtime/program.hpp>

#include <cstddef>

namespace rankc::runtime::cuda::test {

/// It must outlive the context made of `about`.
struct lone_rank {
  static constexpr runtime::lane_row compute[]{{"compute", true}};
  runtime::layout layout{};
  runtime::rank_row row{};
  runtime::description about{};

  lone_rank(std::size_t arena_bytes, bool deterministic) {
    layout.arena_bytes = arena_bytes;
    layout.lanes = compute;
    about.interface_version = runtime::interface_version;
    about.name = "a kernel";
    about.pp = about.dp = about.tp = 1;
    about.deterministic = deterministic;
    about.layouts = {&layout, 1};
    about.ranks = {&row, 1};
  }
  lone_rank(const lone_rank&) = delete;
  lone_rank& operator=(const lone_rank&) = delete;
};

}  // namespace rankc::runtime::cuda::test
