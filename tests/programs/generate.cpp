// SPDX-License-Identifier: Apache-2.0
// generate TARGET OUT PARTS: writes the programs of all test plans for a target, and a registry of them.
#include "plans.hpp"
#include "write_programs.hpp"

#include <rankc/plan/make_plan.hpp>

#include <string>

int main(int argc, char** argv) {
  const generate_request to(argc, argv);
  std::vector<family_program> all;
  const auto add = [&](rankc::plan_data plan, const std::string& job, const std::string& layout,
                       const std::string& type) {
    plan.name = rankc::detail::keep_name(std::string(plan.name) + "_" + type);
    all.push_back({job, layout, type, std::move(plan)});
  };
  for (const programs::job& j : programs::jobs)
    for (const programs::layout& l : programs::all_layouts())
      for (const std::string type : {"f64", "f32", "bf16"})
        if (programs::is_made(to.target, j, l, type))
          add(programs::make(j, l, type == "bf16"), j.name, l.name, type);
  if (to.is_host())
    for (const programs::pipeline& p : programs::pipelines()) add(programs::make(p), p.job, p.layout, "f64");
  return write_programs(to, std::move(all));
}
