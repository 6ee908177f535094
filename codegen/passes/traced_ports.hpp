// SPDX-License-Identifier: Apache-2.0
// The traced ports of an op, each with its value.
#pragma once
#include <rankc/trace/trace.hpp>

#include <vector>

namespace rankc::codegen {

struct traced_port {
  const port* of;
  int value;   // in the trace
  int result;  // index of the op's result; -1: an operand
};

/// Results and operands, in the order of the row's ports.
inline std::vector<traced_port> traced_ports(const rankc::op& o) {
  std::vector<traced_port> all;
  int in = 0, out = 0;
  for (const port& p : o.kind->used_ports()) {
    if (!p.is_traced()) continue;
    if (p.is_written()) {
      all.push_back({&p, o.out[out], out});
      ++out;
    } else {
      all.push_back({&p, o.in[in++], -1});
    }
  }
  return all;
}

}  // namespace rankc::codegen
