// SPDX-License-Identifier: Apache-2.0
// The processes of a program's ranks: all ranks are threads of one process, or each rank is a process.
#pragma once
#include <rankc/runtime/injection.hpp>
#include <rankc/runtime/peers.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rankc::runtime {

struct placement {
  int rank = -1;              // the rank of this process; -1: all of them
  int device = 0;             // the GPU of that rank
  int local_size = 0;         // processes of this program on this machine; 0: unknown
  std::string products = {};  // the file that stores the algorithm of each GEMM (CUDA); empty: none
  // Sends of pipelines and experts go directly to the other GPU's memory, if it can be mapped.
  bool maps_peers = true;
  /// If ranks are processes: contributes a text under a name and returns the texts of all ranks, in rank
  /// order. All processes call it with the same names in the same order. It throws if a process has ended.
  std::function<std::vector<std::string>(const std::string& name, const std::string& mine)> exchange = {};
  /// If ranks are processes: called after a step with the signal that asks this process to stop, or 0.
  /// Returns the signal from any rank, after all ranks have agreed that this step is the last. Otherwise
  /// returns 0, and the next step begins.
  std::function<int(std::int64_t step, int signal)> agreed_stop = {};
  std::shared_ptr<runtime::peers> others = {};  // the other processes
  std::optional<injection> fault = {};          // an injected fault

  bool is_one_rank() const { return rank >= 0; }
  /// True if other processes run other ranks; false for a plan of one rank.
  bool meets_others() const { return is_one_rank() && exchange != nullptr; }
  /// True if this process prints and writes the files that all ranks have in common. Exactly one process
  /// does.
  bool speaks() const { return rank <= 0; }
};

}  // namespace rankc::runtime
