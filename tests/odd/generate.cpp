// SPDX-License-Identifier: Apache-2.0
// generate TARGET OUT: write the programs of the odd plans: for the host all, in f64, for GPUs those on one or two ranks, in f32.
#include "plans.hpp"
#include "write_programs.hpp"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const bool on_host = std::string(argv[1]) == "host";
  std::vector<family_program> programs;
  for (odd::odd_plan& p : odd::plans())
    if (on_host || p.plan.dims.world <= 2) programs.push_back({p.family, p.layout, on_host ? "f64" : "f32", std::move(p.plan)});
  return write_programs(argv[1], argv[2], std::move(programs));
}
