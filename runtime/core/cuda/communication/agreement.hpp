// SPDX-License-Identifier: Apache-2.0
// The properties of GPUs and libraries that all processes must agree on before communicators are created.
#pragma once
#include <rankc/runtime/cuda/context.hpp>
#include <rankc/runtime/placement.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace rankc::runtime::cuda {

/// The GPU and the libraries of a process.
struct gpu_facts {
  std::string host, pci_id;
  std::uint64_t needed = 0, free = 0;  // bytes needed for the arena and the workspaces; free bytes of the GPU
  int nccl = 0, runtime = 0;           // versions, in the libraries' own numbering
};

/// All mismatches: two ranks on one GPU, too little memory, versions that differ from rank 0's; empty without
/// mismatches.
/// Shapes: facts: by rank.
std::string misfits(const std::vector<gpu_facts>&);

/// Exchanges the facts of all processes.
/// Errors: failure (2), the same on all ranks, that names every mismatch.
void agree_on_gpus(const description&, const placement&, int device);

}  // namespace rankc::runtime::cuda
