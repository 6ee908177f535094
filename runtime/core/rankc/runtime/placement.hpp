// SPDX-License-Identifier: Apache-2.0
// Where the ranks of a program run: all as threads of one process, or one in each process.
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
  std::string products = {};  // the file that keeps which algorithm does each product (CUDA); empty: none
  // what pipelines and experts send goes straight into the other GPU's memory, where it can be mapped
  bool maps_peers = true;
  /// Where ranks are processes: give a text under a name and receive those of all, in rank order. All
  /// processes call it with the same names, of each name in the same order; it throws where one of them is
  /// gone.
  std::function<std::vector<std::string>(const std::string& name, const std::string& mine)> exchange = {};
  /// Where ranks are processes: after a step, with the signal that has told this one to stop, or 0. Returns
  /// the signal of which rank ever, once all ranks have agreed that this step is the last; else 0, and the
  /// next step begins.
  std::function<int(std::int64_t step, int signal)> agreed_stop = {};
  std::shared_ptr<runtime::peers> others = {};  // these processes
  std::optional<injection> fault = {};          // on purpose

  bool is_one_rank() const { return rank >= 0; }
  /// Whether other processes have the other ranks: of a plan of one rank there are none.
  bool meets_others() const { return is_one_rank() && exchange != nullptr; }
  /// Whether this process prints, and writes what all ranks have in common: one of all does.
  bool speaks() const { return rank <= 0; }
};

}  // namespace rankc::runtime
