// SPDX-License-Identifier: Apache-2.0
#include "hugging_face_files.hpp"

#include "json/json_file.hpp"
#include "weights_names.hpp"
#include <rankc/trainer/model_files.hpp>

#include <algorithm>
#include <set>
#include <vector>

namespace rankc::runtime {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// The files that an index names.
std::vector<fs::path> files_of_index(const fs::path& index) {
  const auto root = read_json<json>(index, 1, header_limits);
  const json& map = value_of(root, "weight_map");
  if (!map.is_object()) refuse_value(index.string(), 1, "weight_map", shown(map), "an object");
  std::set<fs::path> files;
  for (const auto& [tensor, file] : map.items())
    files.insert(file_within(index.parent_path(),
                             required<std::string>(map, tensor.c_str(), "weight_map.", index.string(), 1),
                             index, 1));
  if (files.empty()) throw failure(1, "RC6550: {} names no files in its weight_map", index);
  return {files.begin(), files.end()};
}

std::unique_ptr<piece_source> open_files(const fs::path& folder) {
  const fs::path one = folder / weights_file, index = folder / weights_index_file;
  const bool is_one = is_there(one, 1) || !is_there(index, 1);
  return std::make_unique<piece_source>(folder.string(), is_one ? std::vector{one} : files_of_index(index));
}

}  // namespace

bool is_hugging_face(const fs::path& folder) { return is_there(folder / config_file, 1); }

hugging_face_files::hugging_face_files(const hugging_face_model& model, const fs::path& folder)
    : prefix_(model.prefix), tensors_(open_files(folder)) {
  const auto& shapes = tensors_->shapes();
  is_bare_ = std::none_of(shapes.begin(), shapes.end(),
                          [&](const auto& tensor) { return tensor.first.starts_with(prefix_); });
}

std::string hugging_face_files::name_of(const std::string& name) const {
  return is_bare_ && name.starts_with(prefix_) ? name.substr(prefix_.size()) : name;
}

}  // namespace rankc::runtime
