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
  for (const programs::job& j : programs::jobs)
    for (const programs::layout& l : programs::layouts)
      for (const std::string type : {"f64", "f32", "bf16"}) {
        if (!programs::is_made(target, j, l, type)) continue;
        rankc::plan_data plan = programs::make(j, l, type == "bf16");
        plan.name += "_" + type;
        std::string folder = out + "/" + plan.name;
        std::vector<std::string> words{"generate", "emit", "--target", target, "--dtype", type, "--out", folder};
        std::vector<char*> arguments;
        for (std::string& w : words) arguments.push_back(w.data());
        if (rankc::codegen::generator_main(plan, static_cast<int>(arguments.size()), arguments.data()) != 0) return 1;
        declarations += "#include \"" + plan.name + "/program.hpp\"\n";
        entries += "    {\"" + std::string(j.name) + "\", \"" + l.name + "\", \"" + type + "\", &" + plan.name +
                   "::about, [] { return rankc::" + target + "::install(" + plan.name + "::program); }},\n";
      }
  std::ofstream(out + "/registry.cpp") << "#include \"registry.hpp\"\n" << declarations << "const std::vector<registered> "
                                       << target << "_registry{\n" << entries << "};\n";
}
