// SPDX-License-Identifier: Apache-2.0
// generate OUT: write the programs of all test plans, in f64 and f32, and a registry of them.
#include "plans.hpp"

#include <rankc/codegen/generator.hpp>

#include <fstream>
#include <iostream>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string out = argv[1];
  std::string declarations, entries;
  for (const programs::job& j : programs::jobs)
    for (const programs::layout& l : programs::layouts)
      for (const std::string type : {"f64", "f32"}) {
        rankc::plan_data plan = programs::make(j, l);
        plan.name += "_" + type;
        std::string folder = out + "/" + plan.name;
        std::vector<std::string> words{"generate", "emit", "--dtype", type, "--out", folder};
        std::vector<char*> arguments;
        for (std::string& w : words) arguments.push_back(w.data());
        if (rankc::codegen::generator_main(plan, static_cast<int>(arguments.size()), arguments.data()) != 0) return 1;
        declarations += "namespace " + plan.name + " { extern const rankc::host::program program; }\n";
        entries += "    {\"" + std::string(j.name) + "\", \"" + l.name + "\", \"" + type + "\", &" + plan.name + "::program},\n";
      }
  std::ofstream(out + "/registry.cpp") << "#include \"registry.hpp\"\n" << declarations << "const std::vector<registered> registry{\n" << entries << "};\n";
}
