// SPDX-License-Identifier: Apache-2.0
// Sees the data of the passes, before and after each pass.
#pragma once
#include <rankc/codegen/lowered.hpp>

namespace rankc::codegen {

struct watcher {
  virtual ~watcher() = default;
  /// A pass over a layer that was lowered from this trace, before it runs and when it is done.
  virtual void over_layer(std::string_view pass, bool done, const body&, const trace&) = 0;
  /// A pass over all ranks.
  virtual void over_ranks(std::string_view pass, bool done, const lowered&) = 0;
};

/// The passes over layers and over ranks, in order: the names of their functions.
std::vector<std::string> names_of_layer_passes();
std::vector<std::string> names_of_rank_passes();

}  // namespace rankc::codegen
