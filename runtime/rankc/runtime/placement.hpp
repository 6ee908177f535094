// SPDX-License-Identifier: Apache-2.0
// Where the ranks of a program run: all as threads of one process, or one in each process.
#pragma once
#include <string>

namespace rankc::runtime {

struct placement {
  int rank = -1;            // the rank of this process; -1: all of them
  int device = 0;           // the GPU of that rank
  std::string meeting;      // host:port at which rank 0 meets the others
  bool peer_stores = true;  // pipeline traffic by stores into the other GPU's memory, where it can be mapped

  bool is_one_rank() const { return rank >= 0; }
};

}  // namespace rankc::runtime
