// SPDX-License-Identifier: Apache-2.0
// generate TARGET OUT PARTS [sample] writes the plans' programs: for the host in f64, and those of three jobs
// in f32 too; for GPUs those on one or two ranks, in f32. A program's text is the same in both types.
#include "plans.hpp"
#include "write_programs.hpp"

#include <rankc/plan/make_plan.hpp>

static bool is_made_in_f32(const std::string& job) {
  return job == "gpt2_one" || job == "gpt2_zbv" || job == "llama_tp2";
}

int main(int argc, char** argv) {
  const generate_request to(argc, argv);
  const bool on_host = to.is_host();
  std::vector<family_program> programs;
  for (const recomputing::variant& v : recomputing::plans())
    for (const std::string type : {"f64", "f32"}) {
      if (on_host && type == "f32" && !is_made_in_f32(v.job)) continue;
      if (!on_host && (type == "f64" || v.plan.dims.world > 2)) continue;
      programs.push_back({v.job, v.what, type, v.plan});
      rankc::plan_data& plan = programs.back().plan;
      plan.name = rankc::detail::keep_name(std::string(plan.name) + "_" + type);
    }
  return write_programs(to, std::move(programs));
}
