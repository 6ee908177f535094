// SPDX-License-Identifier: Apache-2.0
#include "export_folder.hpp"

#include "hugging_face_config.hpp"
#include "json_checksum.hpp"
#include "weights_names.hpp"
#include <rankc/launch/refusal.hpp>
#include <rankc/trainer/safetensors.hpp>

#include <fmt/ranges.h>
#include <algorithm>
#include <string>
#include <vector>

namespace rankc::runtime {
namespace {

namespace fs = std::filesystem;

/// The files of a model in a folder, links included, in the order of their names.
std::vector<fs::path> model_files(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    const bool is_weights = name.starts_with("model") && name.ends_with(".safetensors");
    if (is_weights || name == weights_index_file || name == config_file) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// Whether the writer's checksums are in a file: those of other programs have none.
bool is_our_weights(const fs::path& file) try {
  return fs::is_regular_file(file) && !safetensors_reader(file).checksum_of_header().empty();
} catch (const failure&) {
  return false;
}

/// Whether all files that an index names are weights of ours.
bool is_our_index(const fs::path& file) {
  const auto root = nlohmann::json::parse(contents_of_file(file, 2), nullptr, false);
  const auto map = root.is_object() ? root.find("weight_map") : root.end();
  if (map == root.end() || !map->is_object() || map->empty()) return false;
  return std::all_of(map->begin(), map->end(), [&](const nlohmann::json& name) {
    return name.is_string() && is_our_weights(file.parent_path() / name.get<std::string>());
  });
}

bool is_ours(const fs::path& file) {
  const std::string name = file.filename().string();
  if (name.ends_with(".safetensors")) return is_our_weights(file);
  if (!fs::is_regular_file(file)) return false;
  return name == config_file ? is_config_text(contents_of_file(file, 2)) : is_our_index(file);
}

void remove_model_file(const fs::path& file) {
  std::error_code error;
  fs::remove(file, error);
  if (error) fail_to_write(file, checkpoint_code, error.value());
}

}  // namespace

void refuse_other_models(const fs::path& folder) {
  std::vector<std::string> others;
  for (const fs::path& file : model_files(folder))
    if (!is_ours(file)) others.push_back(file.filename().string());
  if (others.empty()) return;
  throw refusal(2, "--out {}: no export has written its {}; move what is there, or give another folder",
                folder.string(), fmt::join(others, ", "));
}

void replace_model(output_folder& to) {
  std::vector<std::string> names;
  for (const fs::path& file : model_files(to.unfinished())) names.push_back(file.filename().string());
  std::stable_partition(names.begin(), names.end(),
                        [](const std::string& name) { return name != config_file; });
  std::vector<fs::path> old = model_files(to.path());
  std::reverse(old.begin(), old.end());  // an index goes before what it names, and comes after it
  for (const fs::path& file : old)
    if (file.filename() == config_file || !fs::exists(to.unfinished() / file.filename()))
      remove_model_file(file);
  to.put_in_place(names);
}

}  // namespace rankc::runtime
