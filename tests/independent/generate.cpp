// SPDX-License-Identifier: Apache-2.0
// generate TARGET OUT PARTS: write the programs of the plans: for the host all, in f64, for GPUs those on up to four ranks, in f32.
#include "plans.hpp"
#include "write_programs.hpp"

int main(int argc, char** argv) {
  const generate_request to(argc, argv);
  const bool on_host = to.is_host();
  std::vector<family_program> programs;
  for (independent::independent_plan& p : independent::plans())
    if (on_host || p.plan.dims.world <= 4) programs.push_back({p.family, p.layout, on_host ? "f64" : "f32", std::move(p.plan)});
  return write_programs(to, std::move(programs));
}
