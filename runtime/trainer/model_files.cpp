// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/model_files.hpp>

#include "weights_names.hpp"
#include <rankc/runtime/failure.hpp>
#include <rankc/runtime/input_file.hpp>

#include <algorithm>
#include <string_view>
#include <system_error>

namespace rankc::runtime {

namespace fs = std::filesystem;

void fail_to_read(const fs::path& file, int exit_code, const std::string& problem) {
  throw failure(exit_code, "RC6585: checkpoint or model file {} cannot be read: {}", file, problem);
}

std::string contents_of_file(const fs::path& file, int exit_code, std::size_t most) {
  input_file in(file);
  if (in.size() > most)
    throw failure(exit_code, "RC6586: {} has {} bytes; a file of this kind has at most {}", file, in.size(),
                  most);
  std::string text = in.contents();
  if (!in.problem().empty()) fail_to_read(file, exit_code, in.problem());
  return text;
}

bool is_there(const fs::path& path, int exit_code) {
  std::error_code error;
  const bool found = fs::exists(path, error);
  if (error && error != std::errc::not_a_directory) fail_to_read(path, exit_code, error.message());
  return found;
}

fs::path find_model_file(const fs::path& folder, int exit_code) {
  for (const char* const name : {weights_file, weights_index_file, adapter_file})
    if (is_there(folder / name, exit_code)) return folder / name;
  return {};
}

std::vector<fs::path> entries_of(const fs::path& folder, int exit_code) {
  std::error_code error;
  std::vector<fs::path> found;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) found.push_back(entry->path());
  if (error)
    throw failure(exit_code, "RC6587: the entries of folder {} cannot be read: {}", folder, error.message());
  std::sort(found.begin(), found.end());
  return found;
}

bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\0", 2)) == name.npos;
}

fs::path file_within(const fs::path& folder, const std::string& name, const fs::path& named_by,
                     int exit_code) {
  if (is_plain_name(name)) return folder / name;
  throw failure(exit_code,
                "RC6588: {} names the file \"{}\"; it may name files in its own folder only, without a path",
                named_by, name);
}

}  // namespace rankc::runtime
