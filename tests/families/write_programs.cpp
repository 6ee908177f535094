// SPDX-License-Identifier: Apache-2.0
#include "write_programs.hpp"

#include <rankc/codegen/generator.hpp>

#include <fstream>
#include <iostream>

int write_programs(const std::string& target, const std::string& out, std::vector<family_program> programs, registry_of as) {
  std::string declarations, entries;
  for (family_program& p : programs) {
    std::string& name = p.plan.name;
    name += "_" + target;
    std::vector<std::string> words{"generate", "emit", "--target", target, "--dtype", p.type, "--out", out + "/" + name};
    std::vector<char*> arguments;
    for (std::string& w : words) arguments.push_back(w.data());
    if (rankc::codegen::generator_main(p.plan, static_cast<int>(arguments.size()), arguments.data()) != 0) {
      std::cerr << name << " is not written\n";
      return 1;
    }
    declarations += "#include \"" + name + "/program." + (as == registry_of::sources ? "cpp" : "hpp") + "\"\n";
    entries += "    {\"" + p.job + "\", \"" + p.layout + "\", \"" + p.type + "\", &" + name + "::about, &" + name +
               "::program, [](const rankc::runtime::placement& where) { return rankc::" + target + "::install(" + name +
               "::program, where); }},\n";
  }
  std::ofstream(out + "/registry.cpp") << "#include \"registry.hpp\"\n" << declarations << "const std::vector<registered> " << target
                                       << "_registry{\n" << entries << "};\n";
  return 0;
}
