// SPDX-License-Identifier: Apache-2.0
#include "write_programs.hpp"

#include "sample.hpp"

#include <rankc/codegen/generator.hpp>
#include <rankc/plan/make_plan.hpp>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <utility>

generate_request::generate_request(int argc, char** argv) {
  takes_sample = argc == 5 && std::string(argv[4]) == "sample";
  parts = argc == 4 || takes_sample ? std::atoi(argv[3]) : 0;
  if (parts < 1) {
    std::cerr << "generate TARGET OUT PARTS [sample]\n";
    std::exit(2);
  }
  target = argv[1];
  out = argv[2];
}

int write_programs(const generate_request& to, std::vector<split_plan> plans) {
  std::vector<family_program> programs;
  for (split_plan& p : plans)
    if (to.is_host() || p.plan.dims.world <= 4)
      programs.push_back({p.job, p.layout, to.is_host() ? "f64" : "f32", std::move(p.plan)});
  return write_programs(to, std::move(programs));
}

int write_programs_of_types(const generate_request& to, const std::vector<split_plan>& plans) {
  std::vector<family_program> programs;
  for (const split_plan& p : plans)
    for (const std::string type : {"f64", "f32", "bf16"}) {
      if (to.is_host() != (type == "f64") || (!to.is_host() && p.plan.dims.world > 2)) continue;
      programs.push_back({p.job, p.layout, type, p.plan});
      rankc::plan_data& plan = programs.back().plan;
      plan.name = rankc::detail::keep_name(std::string(plan.name) + "_" + type);
    }
  return write_programs(to, std::move(programs));
}

int write_programs(const generate_request& to, std::vector<family_program> programs) {
  if (to.takes_sample) programs = sample(std::move(programs));
  std::string declarations, entries;
  std::vector<std::string> parts(static_cast<std::size_t>(to.parts));
  for (std::size_t i = 0; i < programs.size(); ++i) {
    family_program& p = programs[i];
    const std::string name = std::string(p.plan.name) + "_" + to.target;
    p.plan.name = rankc::detail::keep_name(name);
    std::vector<std::string> words{"generate", "emit", "--target", to.target,
                                   "--dtype",  p.type, "--out",    to.out + "/" + name};
    std::vector<char*> arguments;
    for (std::string& w : words) arguments.push_back(w.data());
    if (rankc::codegen::generator_main(p.plan, static_cast<int>(arguments.size()), arguments.data()) != 0) {
      std::cerr << name << " is not written\n";
      return 1;
    }
    parts[i * parts.size() / programs.size()] += "#include \"" + name + "/program.cpp\"\n";
    declarations += "#include \"" + name + "/program.hpp\"\n";
    entries += "    {\"" + p.job + "\", \"" + p.layout + "\", \"" + p.type + "\", &" + name + "::about, &" +
               name + "::program, [](const rankc::runtime::placement& where) { return rankc::" + to.target +
               "::install(" + name + "::program, where); }},\n";
  }
  for (std::size_t i = 0; i < parts.size(); ++i)
    std::ofstream(to.out + "/part_" + std::to_string(i) + ".cpp") << parts[i];
  std::ofstream(to.out + "/registry.cpp")
      << "#include \"registry.hpp\"\n"
      << declarations << "const std::vector<registered> " << to.target << "_registry{\n"
      << entries << "};\nconst bool " << to.target
      << "_has_every_program = " << (to.takes_sample ? "false" : "true") << ";\n";
  return 0;
}
