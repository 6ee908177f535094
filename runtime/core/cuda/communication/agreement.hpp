// SPDX-License-Identifier: Apache-2.0
// What the GPUs and libraries of all processes must agree on before there are communicators.
#pragma once
#include <rankc/runtime/cuda/context.hpp>
#include <rankc/runtime/placement.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace rankc::runtime::cuda {

/// What a process says of its GPU and its libraries.
struct gpu_facts {
  std::string host, pci_id;
  std::uint64_t needed = 0, free = 0;  // bytes: of the arena and the workspaces; of the GPU
  int nccl = 0, runtime = 0;           // versions, as the libraries number them
};

/// All that does not fit: two ranks on one GPU, too little memory, other versions than rank 0's; empty where
/// nothing is wrong. Shapes: facts: by rank.
std::string misfits(const std::vector<gpu_facts>&);

/// Exchange the facts of all processes.
/// Errors: failure (2) on all ranks alike, naming everything that does not fit.
void agree_on_gpus(const description&, const placement&, int device);

}  // namespace rankc::runtime::cuda
