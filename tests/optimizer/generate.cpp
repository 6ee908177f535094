// SPDX-License-Identifier: Apache-2.0
// generate TARGET OUT PARTS: writes the plans' programs: for the host in f64; for GPUs some of them, in bf16.
#include "plans.hpp"
#include "write_programs.hpp"

int main(int argc, char** argv) {
  const generate_request to(argc, argv);
  const bool on_host = to.is_host();
  std::vector<family_program> programs;
  for (const optimizing::variant& v : optimizing::plans()) {
    const bool is_one = v.layout == "one" || v.layout == "llama_one";
    const bool is_of_two = (v.optimizer == "no_master" && (v.layout == "tp2" || v.layout == "shard2")) ||
                           ((v.optimizer == "adamw_reduced" || v.optimizer == "adamw_stochastic") &&
                            (v.layout == "dp2" || v.layout == "shard2"));
    if (on_host || is_one || is_of_two)
      programs.push_back({v.optimizer, v.layout, on_host ? "f64" : "bf16", v.plan});
  }
  return write_programs(to, std::move(programs));
}
