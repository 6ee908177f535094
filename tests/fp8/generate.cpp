// SPDX-License-Identifier: Apache-2.0
// generate TARGET OUT PARTS: write the plans' programs: for the host in f64, for GPUs those on one or two ranks, in f32 and in bf16.
#include "plans.hpp"
#include "write_programs.hpp"

int main(int argc, char** argv) {
  const generate_request to(argc, argv);
  const bool on_host = to.is_host();
  std::vector<family_program> programs;
  for (const narrowing::variant& v : narrowing::plans())
    for (const std::string type : {"f64", "f32", "bf16"}) {
      if (on_host != (type == "f64") || (!on_host && v.plan.dims.world > 2)) continue;
      programs.push_back({v.job, v.layout, type, v.plan});
      programs.back().plan.name += "_" + type;
    }
  return write_programs(to, std::move(programs));
}
