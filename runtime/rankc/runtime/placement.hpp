// SPDX-License-Identifier: Apache-2.0
// Where the ranks of a program run: all as threads of one process, or one in each process.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace rankc::runtime {

struct placement {
  int rank = -1;            // the rank of this process; -1: all of them
  int device = 0;           // the GPU of that rank
  std::string meeting;      // host:port at which rank 0 meets the others
  bool peer_stores = true;  // pipeline traffic by stores into the other GPU's memory, where it can be mapped
  /// Where ranks are processes: give a text under a name and receive those of all, in rank order. All processes call it, in
  /// the same order, from any one thread at a time; it throws where one of them is gone.
  std::function<std::vector<std::string>(const std::string& name, const std::string& mine)> exchange = {};

  bool is_one_rank() const { return rank >= 0; }
  /// Whether this process prints, and writes what all ranks have in common: one of all does.
  bool speaks() const { return rank <= 0; }
};

}  // namespace rankc::runtime
