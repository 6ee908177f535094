// SPDX-License-Identifier: Apache-2.0
// generate OUT: write the plans' programs for the host in f64, and a registry of them.
#include <rankc/codegen/generator.hpp>

#include <fstream>
#include <iostream>

#include "plans.hpp"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string out = argv[1];
  std::string declarations, entries;
  for (const adapting::variant& v : adapting::plans()) {
    const std::string& name = v.plan.name;
    std::vector<std::string> words{"generate", "emit", "--target", "host", "--dtype", "f64", "--out", out + "/" + name};
    std::vector<char*> arguments;
    for (std::string& w : words) arguments.push_back(w.data());
    if (rankc::codegen::generator_main(v.plan, static_cast<int>(arguments.size()), arguments.data()) != 0) {
      std::cerr << name << " is not written\n";
      return 1;
    }
    declarations += "#include \"" + name + "/program.cpp\"\n";
    entries += "    {\"" + v.job + "\", \"" + v.layout + "\", \"f64\", &" + name +
               "::about, [](const rankc::runtime::placement&) { return rankc::host::install(" + name + "::program); }},\n";
  }
  std::ofstream(out + "/registry.cpp") << declarations << "#include \"registry.hpp\"\nconst std::vector<registered> host_registry{\n"
                                       << entries << "};\n";
}
