// SPDX-License-Identifier: Apache-2.0
#include "agreement.hpp"

#include "../../host_name.hpp"

#include "../device/check.hpp"
#include <rankc/contract/device_memory.hpp>

#include <sstream>

namespace rankc::runtime::cuda {
namespace {

gpu_facts facts_of(const description& about, const placement& where, int device) {
  gpu_facts f;
  f.host = host_name();
  rank r;
  r.index = where.rank;
  r.steps_done = -1;
  char name[256];
  check(r, cudaDeviceGetPCIBusId(name, sizeof name, device), "cudaDeviceGetPCIBusId");
  f.pci_id = name;
  std::size_t total = 0;
  check(r, cudaMemGetInfo(&f.free, &total), "cudaMemGetInfo");
  const layout& l = layout_of(about, where.rank);
  f.needed = l.arena_bytes;
  for (const lane_row& lane : l.lanes)
    f.needed += (lane.computes ? workspace_bytes : 0) + (lane.rounds ? rounded_bytes : 0);
  check(r, ncclGetVersion(&f.nccl), nullptr, "ncclGetVersion");
  check(r, cudaRuntimeGetVersion(&f.runtime), "cudaRuntimeGetVersion");
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
    for (std::size_t other = 0; other < r; ++other)
      if (!own.pci_id.empty() && own.pci_id == all[other].pci_id && own.host == all[other].host)
        add(say("RC5112: ranks {} and {} are on one GPU, {} of {}", other, r, own.pci_id, own.host));
    if (own.needed > own.free)
      add(say("RC5113: rank {} ({}) needs {} bytes of GPU {}, which has {} free", r, own.host, own.needed,
              own.pci_id, own.free));
    if (own.nccl != zero.nccl)
      add(say("RC5114: rank {} ({}) has NCCL {}; rank 0 has {}", r, own.host, own.nccl, zero.nccl));
    if (own.runtime != zero.runtime)
      add(say("RC5115: rank {} ({}) has the CUDA runtime {}; rank 0 has {}", r, own.host, own.runtime,
              zero.runtime));
  }
  return text;
}

void agree_on_gpus(const description& about, const placement& where, int device) {
  std::vector<gpu_facts> all;
  for (const std::string& text :
       where.exchange("GPUs and libraries", text_of(facts_of(about, where, device))))
    all.push_back(from_text(text));
  if (const std::string text = misfits(all); !text.empty())
    throw failure(2, "RC5116: the GPUs of the ranks do not fit the program: {}", text);
}

}  // namespace rankc::runtime::cuda
