// SPDX-License-Identifier: Apache-2.0
// generate OUT: write the plans' programs for the host, in f64 and in f32, and a registry of them.
#include <rankc/codegen/generator.hpp>

#include <fstream>
#include <iostream>

#include "plans.hpp"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string out = argv[1];
  std::string declarations, entries;
  for (recomputing::variant& v : recomputing::plans())
    for (const std::string type : {"f64", "f32"}) {
      rankc::plan_data plan = v.plan;
      plan.name += "_" + type;
      std::vector<std::string> words{"generate", "emit", "--target", "host", "--dtype", type, "--out", out + "/" + plan.name};
      std::vector<char*> arguments;
      for (std::string& w : words) arguments.push_back(w.data());
      if (rankc::codegen::generator_main(plan, static_cast<int>(arguments.size()), arguments.data()) != 0) {
        std::cerr << plan.name << " is not written\n";
        return 1;
      }
      declarations += "#include \"" + plan.name + "/program.cpp\"\n";
      entries += "    {\"" + v.job + "\", \"" + v.what + "\", \"" + type + "\", &" + plan.name +
                 "::about, [](const rankc::runtime::placement&) { return rankc::host::install(" + plan.name + "::program); }},\n";
    }
  std::ofstream(out + "/registry.cpp") << declarations << "#include \"registry.hpp\"\nconst std::vector<registered> host_registry{\n"
                                       << entries << "};\n";
}
