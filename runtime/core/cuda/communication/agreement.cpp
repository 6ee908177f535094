// SPDX-License-Identifier: Apache-2.0
#include "agreement.hpp"

#include "../../host_name.hpp"

#include <rankc/runtime/cuda/device_memory.hpp>

#include <sstream>

namespace rankc::runtime::cuda {
namespace {

gpu_facts facts_of(const description& about, const placement& where, int device) {
  gpu_facts f;
  f.host = host_name();
  char name[256];
  if (cudaDeviceGetPCIBusId(name, sizeof name, device) == cudaSuccess) f.pci_id = name;
  std::size_t free = 0, total = 0;
  if (cudaMemGetInfo(&free, &total) == cudaSuccess) f.free = free;
  cudaGetLastError();
  const layout& l = layout_of(about, where.rank);
  f.needed = l.arena_bytes;
  for (const lane_row& lane : l.lanes)
    f.needed += (lane.computes ? workspace_bytes : 0) + (lane.rounds ? rounded_bytes : 0);
  ncclGetVersion(&f.nccl);
  cudaRuntimeGetVersion(&f.runtime);
  return f;
}

std::string text_of(const gpu_facts& f) {
  std::ostringstream out;
  out << f.host << '\n' << f.pci_id << '\n' << f.needed << ' ' << f.free << ' ' << f.nccl << ' ' << f.runtime;
  return out.str();
}

gpu_facts from_text(const std::string& text) {
  gpu_facts f;
  std::istringstream in(text);
  std::getline(in, f.host);
  std::getline(in, f.pci_id);
  in >> f.needed >> f.free >> f.nccl >> f.runtime;
  return f;
}

}  // namespace

std::string misfits(const std::vector<gpu_facts>& all) {
  std::string text;
  const auto add = [&](const std::string& what) { text += (text.empty() ? "" : "; ") + what; };
  for (std::size_t r = 0; r < all.size(); ++r) {
    const gpu_facts &own = all[r], &zero = all[0];
    const std::string who = "rank " + std::to_string(r) + " (" + own.host + ")";
    for (std::size_t other = 0; other < r; ++other)
      if (!own.pci_id.empty() && own.pci_id == all[other].pci_id && own.host == all[other].host)
        add("ranks " + std::to_string(other) + " and " + std::to_string(r) + " are on one GPU, " +
            own.pci_id + " of " + own.host);
    if (own.needed > own.free)
      add(who + " needs " + std::to_string(own.needed) + " bytes of GPU " + own.pci_id + ", which has " +
          std::to_string(own.free) + " free");
    if (own.nccl != zero.nccl)
      add(who + " has NCCL " + std::to_string(own.nccl) + ", rank 0 has " + std::to_string(zero.nccl));
    if (own.runtime != zero.runtime)
      add(who + " has the CUDA runtime " + std::to_string(own.runtime) + ", rank 0 has " +
          std::to_string(zero.runtime));
  }
  return text;
}

void agree_on_gpus(const description& about, const placement& where, int device) {
  std::vector<gpu_facts> all;
  for (const std::string& text :
       where.exchange("GPUs and libraries", text_of(facts_of(about, where, device))))
    all.push_back(from_text(text));
  if (const std::string text = misfits(all); !text.empty())
    throw failure::reported(2, "the ranks cannot start together: " + text);
}

}  // namespace rankc::runtime::cuda
