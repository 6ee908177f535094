// SPDX-License-Identifier: Apache-2.0
#include "beside_tokens.hpp"

#include <rankc/trainer/data_files.hpp>

#include <set>

namespace rankc::runtime {

namespace fs = std::filesystem;

std::optional<fs::path> beside_tokens(fs::path tokens, std::string_view extension) {
  for (;;) {
    fs::path file = fs::path(tokens).replace_extension(extension);
    if (has_entry(file)) return file;
    if (!fs::is_symlink(tokens)) return std::nullopt;
    tokens = tokens.parent_path() / fs::read_symlink(tokens);
  }
}

void remove_companions(std::vector<fs::path>& files) {
  const std::set<fs::path> all(files.begin(), files.end());
  std::erase_if(files, [&](const fs::path& file) {
    const fs::path extension = file.extension();
    const bool is_companion =
        extension == index_extension || extension == mask_extension || extension == weights_extension;
    return is_companion && all.contains(fs::path(file).replace_extension(".bin"));
  });
}

}  // namespace rankc::runtime
