// SPDX-License-Identifier: Apache-2.0
// generate TARGET OUT: write the plans' programs for the host in f64, or some of them for GPUs in bf16, and a registry of them.
#include <rankc/codegen/generator.hpp>

#include <fstream>
#include <iostream>

#include "plans.hpp"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string target = argv[1], out = argv[2], type = target == "cuda" ? "bf16" : "f64";
  const std::string placed = target == "cuda" ? " where" : "";
  std::string declarations, entries;
  for (const optimizing::variant& v : optimizing::plans()) {
    const std::string& name = v.plan.name;
    const bool is_one = v.layout == "one" || v.layout == "llama_one", is_of_two = v.layout == "tp2" || v.layout == "shard2";
    if (target == "cuda" && !is_one && !(is_of_two && v.optimizer == "no_master")) continue;
    std::vector<std::string> words{"generate", "emit", "--target", target, "--dtype", type, "--out", out + "/" + name};
    std::vector<char*> arguments;
    for (std::string& w : words) arguments.push_back(w.data());
    if (rankc::codegen::generator_main(v.plan, static_cast<int>(arguments.size()), arguments.data()) != 0) {
      std::cerr << name << " is not written\n";
      return 1;
    }
    declarations += "#include \"" + name + "/program.cpp\"\n";
    entries += "    {\"" + v.optimizer + "\", \"" + v.layout + "\", \"" + type + "\", &" + name +
               "::about, [](const rankc::runtime::placement&" + placed + ") { return rankc::" + target + "::install(" + name + "::program" +
               (placed.empty() ? "" : ",") + placed + "); }},\n";
  }
  std::ofstream(out + "/registry.cpp") << declarations << "#include \"registry.hpp\"\nconst std::vector<registered> " << target << "_registry{\n"
                                       << entries << "};\n";
}
