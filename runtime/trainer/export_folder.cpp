// SPDX-License-Identifier: Apache-2.0
#include "export_folder.hpp"

#include "hugging_face_origin.hpp"
#include "json/json_file.hpp"
#include "peft_adapter.hpp"
#include "weights_names.hpp"
#include <rankc/trainer/checkpoint.hpp>
#include <rankc/trainer/model_files.hpp>
#include <rankc/trainer/mapped_file.hpp>
#include <rankc/trainer/safetensors.hpp>

#include <fmt/ranges.h>
#include <algorithm>
#include <string>
#include <vector>

namespace rankc::runtime {
namespace {

namespace fs = std::filesystem;

/// True for the config of a model or of an adapter, which an export writes last.
bool is_config(const std::string& name) { return name == config_file || name == adapter_config_file; }

/// The model files in a folder, links included, sorted by name.
std::vector<fs::path> model_files(const fs::path& folder) {
  if (!is_there(folder, 2)) return {};
  std::vector<fs::path> found = entries_of(folder, 2);
  std::erase_if(found, [](const fs::path& file) {
    const std::string name = file.filename().string();
    const bool is_weights = name.starts_with("model") && name.ends_with(".safetensors");
    return !is_weights && name != weights_index_file && name != adapter_file && !is_config(name);
  });
  return found;
}

/// True if a file has the checksums that the writer stores; files of other programs lack them.
bool is_our_weights(const fs::path& file) { return !safetensors_reader(file).checksum_of_header().empty(); }

/// True if all files that an index names are weights that an export wrote.
bool is_our_index(const fs::path& file) {
  const auto root = read_json<nlohmann::json>(file, 2, header_limits);
  const auto& map = value_of(root, "weight_map");
  if (!map.is_object() || map.empty()) return false;
  return std::all_of(map.begin(), map.end(), [&](const nlohmann::json& name) {
    return name.is_string() &&
           is_our_weights(file_within(file.parent_path(), name.get<std::string>(), file, 2));
  });
}

/// True if an export wrote a file; false if the file cannot be read as one of an export.
bool is_ours(const fs::path& file) try {
  const std::string name = file.filename().string();
  if (name.ends_with(".safetensors")) return is_our_weights(file);
  if (name == adapter_config_file) return is_our_adapter_config(file);
  if (name == config_file) return is_config_text(contents_of_file(file, 2, settings_limits.bytes));
  return is_our_index(file);
} catch (const failure&) {
  return false;
}

/// True if two files have the same bytes.
bool is_equal(const fs::path& a, const fs::path& b) {
  const mapped_file one(a), other(b);
  return one.bytes() == other.bytes();
}

void remove_model_file(const fs::path& file) {
  std::error_code error;
  fs::remove(file, error);
  if (error) fail_to_write(file, checkpoint_code, error.value());
}

}  // namespace

void refuse_other_models(const fs::path& folder, const std::optional<fs::path>& origin) {
  if (!find_checkpoints(folder).empty())
    throw failure(2, "RC6325: --out {} has checkpoints; name another folder for the model", folder);
  std::vector<std::string> others;
  for (const fs::path& file : model_files(folder))
    if (!is_ours(file)) others.push_back(file.filename().string());
  if (origin)
    for (const std::string& name : copied_files(*origin))
      if (is_there(folder / name, 2) && !is_equal(folder / name, *origin / name)) others.push_back(name);
  if (others.empty()) return;
  throw failure(2, "RC6525: --out {} has files that no export wrote: {}; move them or name another folder",
                folder, fmt::format("{}", fmt::join(others, ", ")));
}

void replace_model(output_folder& to) {
  std::vector<std::string> names = copied_files(to.unfinished());
  for (const fs::path& file : model_files(to.unfinished())) names.push_back(file.filename().string());
  std::stable_partition(names.begin(), names.end(), [](const std::string& name) { return !is_config(name); });
  std::vector<fs::path> old = model_files(to.path());
  std::reverse(old.begin(),
               old.end());  // an index is removed before the files that it names, and written after them
  for (const fs::path& file : old)
    if (is_config(file.filename().string()) || !is_there(to.unfinished() / file.filename(), checkpoint_code))
      remove_model_file(file);
  to.put_in_place(names);
}

}  // namespace rankc::runtime
