// SPDX-License-Identifier: Apache-2.0
// generate TARGET OUT PARTS: write the plans' programs: for the host in f64, for GPUs those on up to four ranks, in f32.
#include "plans.hpp"
#include "write_programs.hpp"

int main(int argc, char** argv) {
  const generate_request to(argc, argv);
  std::vector<family_program> programs;
  for (documents::split_plan& p : documents::plans())
    if (to.is_host() || p.plan.dims.world <= 4)
      programs.push_back({p.job, p.layout, to.is_host() ? "f64" : "f32", std::move(p.plan)});
  return write_programs(to, std::move(programs));
}
