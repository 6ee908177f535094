// SPDX-License-Identifier: Apache-2.0
// The measured steps in results/, which pages and tests of the cost model quote.
#pragma once
#include <nlohmann/json.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace bench {

/// One line of a file. `file`: its name without the extension, such as "h200_5b26c4fb": the GPU, and the
/// commit that recorded the line.
struct result {
  std::string file;
  nlohmann::json line;

  bool is_on(std::string_view gpu) const { return file.starts_with(std::string(gpu) + "_"); }
};

/// The lines of all files.
const std::vector<result>& results();

/// The first line of a program in a file.
/// Errors: std::runtime_error that names file and program if there is none.
const result& result_of(std::string_view file, std::string_view program);

}  // namespace bench
