// SPDX-License-Identifier: Apache-2.0
// Compiles many programs into one shared object, which uses the runtime inside this executable and does not
// link it again.
#pragma once
#include "program.hpp"

#include <dlfcn.h>

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace fuzz {

/// The compiler and the shape of a batch's source; the build provides them.
struct compiler {
  std::string command, includes;  // "g++", "-I... -I..."
  // An object exports a table of `type`, which `header` declares; {0} in `entry` is the program's name.
  std::string header = "program.hpp", type = "fuzz::program",
              entry = R"({{"{0}", &{0}::about, [] {{ return rankc::host::install({0}::program); }}}})";
};

/// The results for programs in FOLDER/NAME.
struct compiled {
  std::map<std::string, std::string> object_of;  // name -> shared object
  std::map<std::string, std::string> wrong;      // name -> the compiler's first error
};

/// Compile the programs, `at_once` batches at a time.
compiled compile_programs(const compiler&, const std::string& folder, const std::vector<std::string>& names,
                          int at_once);

/// Load a program from a shared object, which stays loaded. `Entry` is the compiler's `type`.
/// Errors: std::runtime_error.
template <class Entry = program>
Entry load_program(const std::string& object, const std::string& name) {
  void* const handle = dlopen(object.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) throw std::runtime_error(dlerror());
  const auto* p = static_cast<const Entry*>(dlsym(handle, "programs"));
  while (p && p->name && p->name != name) ++p;
  if (!p || !p->name) throw std::runtime_error("no program '" + name + "' in " + object);
  return *p;
}

}  // namespace fuzz
