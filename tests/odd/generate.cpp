// SPDX-License-Identifier: Apache-2.0
// generate TARGET OUT: write the programs of the odd plans and a registry of them; for GPUs of those on one or two
// ranks.
#include <rankc/codegen/generator.hpp>

#include <fstream>
#include <iostream>

#include "plans.hpp"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string target = argv[1], out = argv[2], type = target == "cuda" ? "f32" : "f64";
  std::string declarations, entries;
  for (odd::odd_plan& p : odd::plans()) {
    if (target == "cuda" && p.plan.dims.world > 2) continue;
    p.plan.name += "_" + target;  // programs of both targets are linked together
    std::vector<std::string> words{"generate", "emit", "--target", target,
                                   "--dtype",  type,   "--out",    out + "/" + p.plan.name};
    std::vector<char*> arguments;
    for (std::string& w : words) arguments.push_back(w.data());
    if (rankc::codegen::generator_main(p.plan, static_cast<int>(arguments.size()), arguments.data()) != 0) {
      std::cerr << p.plan.name << " is not written\n";
      return 1;
    }
    declarations += "#include \"" + p.plan.name + "/program.cpp\"\n";
    entries += "    {\"" + p.family + "\", \"" + p.layout + "\", \"" + type + "\", &" + p.plan.name +
               "::about, [](const rankc::runtime::placement&) { return rankc::" + target + "::install(" + p.plan.name + "::program); }},\n";
  }
  std::ofstream(out + "/registry.cpp") << declarations << "#include \"registry.hpp\"\nconst std::vector<registered> "
                                       << target << "_registry{\n"
                                       << entries << "};\n";
}
