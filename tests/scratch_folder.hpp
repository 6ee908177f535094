// SPDX-License-Identifier: Apache-2.0
// A test's own temporary folder, deleted with the test.
#pragma once
#include <stdlib.h>

#include <filesystem>
#include <stdexcept>
#include <string>

namespace rankc {

struct scratch_folder {
  scratch_folder() {
    std::string name = (std::filesystem::temp_directory_path() / "rankc_test_XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("no scratch folder");
    path = name;
  }
  ~scratch_folder() { std::filesystem::remove_all(path); }
  scratch_folder(const scratch_folder&) = delete;
  std::filesystem::path path;
};

}  // namespace rankc
