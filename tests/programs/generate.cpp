// SPDX-License-Identifier: Apache-2.0
// generate TARGET OUT: write the programs of all test plans for a target, and a registry of them.
#include "plans.hpp"

#include <rankc/codegen/generator.hpp>

#include <fstream>
#include <iostream>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string target = argv[1], out = argv[2];
  std::string declarations, entries;
  const auto write = [&](rankc::plan_data plan, const char* job, const char* layout, const std::string& type) {
    plan.name += "_" + type + (target == "cuda" ? "_cuda" : "");  // programs of both targets are linked together
    std::string folder = out + "/" + plan.name;
    std::vector<std::string> words{"generate", "emit", "--target", target, "--dtype", type, "--out", folder};
    std::vector<char*> arguments;
    for (std::string& w : words) arguments.push_back(w.data());
    declarations += "#include \"" + plan.name + "/program.hpp\"\n";
    entries += "    {\"" + std::string(job) + "\", \"" + layout + "\", \"" + type + "\", &" + plan.name + "::about, [](" +
               "const rankc::runtime::placement& where) { return rankc::" + target + "::install(" + plan.name + "::program, where); }},\n";
    return rankc::codegen::generator_main(plan, static_cast<int>(arguments.size()), arguments.data()) == 0;
  };
  for (const programs::job& j : programs::jobs)
    for (const programs::layout& l : programs::layouts)
      for (const std::string type : {"f64", "f32", "bf16"})
        if (programs::is_made(target, j, l, type) && !write(programs::make(j, l, type == "bf16"), j.name, l.name, type)) return 1;
  if (target == "host")
    for (const programs::pipeline& p : programs::pipelines())
      if (!write(programs::make(p), p.job.c_str(), p.layout.c_str(), "f64")) return 1;
  std::ofstream(out + "/registry.cpp") << "#include \"registry.hpp\"\n" << declarations << "const std::vector<registered> "
                                       << target << "_registry{\n" << entries << "};\n";
}
