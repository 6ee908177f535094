// SPDX-License-Identifier: Apache-2.0
// Programs are compiled many to a shared object, which the runtime inside this executable serves: no linking of it
// again.
#pragma once
#include "program.hpp"

#include <map>
#include <string>
#include <vector>

namespace fuzz {

/// What compiles a batch: told by the build.
struct compiler {
  std::string command, includes;  // "g++", "-I... -I..."
};

/// Programs of which each lies in FOLDER/NAME.
struct compiled {
  std::map<std::string, std::string> object_of;  // name -> shared object
  std::map<std::string, std::string> wrong;      // name -> the compiler's first error
};

/// Compile the programs, `at_once` batches at a time.
compiled compile_programs(const compiler&, const std::string& folder, const std::vector<std::string>& names,
                          int at_once);

/// A program of a shared object, which stays loaded.
/// Errors: std::runtime_error.
program load_program(const std::string& object, const std::string& name);

}  // namespace fuzz
