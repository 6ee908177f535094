// SPDX-License-Identifier: Apache-2.0
// generate OUT: write the programs of all odd plans and a registry of them.
#include <rankc/codegen/generator.hpp>

#include <fstream>
#include <iostream>

#include "plans.hpp"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string out = argv[1];
  std::string declarations, entries;
  for (const odd::odd_plan& p : odd::plans()) {
    std::vector<std::string> words{"generate", "emit", "--target", "host", "--dtype", "f64", "--out", out + "/" + p.plan.name};
    std::vector<char*> arguments;
    for (std::string& w : words) arguments.push_back(w.data());
    if (rankc::codegen::generator_main(p.plan, static_cast<int>(arguments.size()), arguments.data()) != 0) {
      std::cerr << p.plan.name << " is not written\n";
      return 1;
    }
    declarations += "#include \"" + p.plan.name + "/program.cpp\"\n";
    entries += "    {\"" + p.family + "\", \"" + p.layout + "\", \"f64\", &" + p.plan.name + "::about, [] { return rankc::host::install(" +
               p.plan.name + "::program); }},\n";
  }
  std::ofstream(out + "/registry.cpp") << declarations << "#include \"registry.hpp\"\nconst std::vector<registered> host_registry{\n"
                                       << entries << "};\n";
}
