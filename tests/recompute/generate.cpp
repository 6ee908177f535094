// SPDX-License-Identifier: Apache-2.0
// generate TARGET OUT PARTS: write the plans' programs: for the host in f64 and in f32, for GPUs those on one
// or two ranks, in f32.
#include "plans.hpp"
#include "write_programs.hpp"

int main(int argc, char** argv) {
  const generate_request to(argc, argv);
  const bool on_host = to.is_host();
  std::vector<family_program> programs;
  for (const recomputing::variant& v : recomputing::plans())
    for (const std::string type : {"f64", "f32"}) {
      if (!on_host && (type == "f64" || v.plan.dims.world > 2)) continue;
      programs.push_back({v.job, v.what, type, v.plan});
      programs.back().plan.name += "_" + type;
    }
  return write_programs(to, std::move(programs));
}
