// SPDX-License-Identifier: Apache-2.0
// Data exchange between ranks that share a GPU: the memory of their communicator, and kernels that
// synchronize through it.
#pragma once
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstddef>
#include <vector>

namespace one_gpu {

inline constexpr int most_members = 8;
inline constexpr std::size_t stage_bytes = std::size_t{1} << 18, mail_bytes = std::size_t{1} << 16;

/// A communicator's memory on the device. Only member m writes `turn[m]`, only the sender writes `sent`, and
/// only the receiver `taken`.
struct meeting {
  unsigned long long turn[most_members];                // number of barriers at which a member has arrived
  unsigned long long sent[most_members][most_members];  // chunks from one member to another
  unsigned long long taken[most_members][most_members];
  std::byte stage[most_members][stage_bytes];
  std::byte mail[most_members][most_members][mail_bytes];
};

/// One member of a communicator.
struct member {
  meeting* at;
  int place, members;
  const int* aborted;  // on the host; the device reads it
};

enum class what { all_reduce, all_gather, reduce_scatter, broadcast };

/// A collective with NCCL's arguments; `count` as each NCCL call defines it.
struct collective {
  what kind;
  const void* from;
  void* to;
  std::size_t count;
  ncclDataType_t type;
  bool largest;   // maximum instead of sum
  double factor;  // factor for each member's part
  int root;
};

/// A message to a peer, or from one.
struct message {
  bool sends;
  int peer;
  std::byte* data;
  std::size_t bytes;
};

void enqueue(const member&, const collective&, cudaStream_t);
/// Enqueue the messages of one group. All run concurrently; those with one peer in one direction run in
/// order.
void enqueue(const member&, std::vector<message>, cudaStream_t);

}  // namespace one_gpu
