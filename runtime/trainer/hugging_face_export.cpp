// SPDX-License-Identifier: Apache-2.0
#include "hugging_face_export.hpp"

#include "hugging_face_tensors.hpp"
#include "source_in_files.hpp"
#include "weights_names.hpp"
#include <rankc/runtime/durable.hpp>
#include <rankc/trainer/model_files.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace rankc::runtime {
namespace {

constexpr std::size_t largest_copied = std::size_t{1} << 30;  // the limit in bytes of a copied tokenizer file

/// PyTorch's name of a type.
const char* torch_name_of(dtype type) {
  if (type == dtype::f64) return "float64";
  return type == dtype::f32 ? "float32" : "bfloat16";
}

std::size_t bytes_of(const joined& j) { return j.as.count() * size_of(j.as.type); }

/// The tensors of each file.
std::vector<std::vector<const joined*>> files_of(const std::vector<joined>& all, std::size_t file_bytes) {
  std::vector<std::vector<const joined*>> files(1);
  std::size_t bytes = 0;
  for (const joined& j : all) {
    if (bytes > 0 && bytes + bytes_of(j) > file_bytes) {
      files.emplace_back();
      bytes = 0;
    }
    files.back().push_back(&j);
    bytes += bytes_of(j);
  }
  return files;
}

}  // namespace

void write_hugging_face(const description& about, const std::vector<global_parameter>& parameters,
                        const tensor_source& weights,
                        const std::optional<std::filesystem::path>& origin_folder,
                        const std::filesystem::path& folder, std::size_t file_bytes) {
  const hugging_face_model model = hugging_face_model_of(about);
  const source_in_files from(weights, about, model, parameters);
  std::optional<hugging_face_origin> kept;
  if (origin_folder) kept.emplace(about, model, *origin_folder);
  hugging_face_origin* const origin = kept ? &*kept : nullptr;
  const std::vector<joined> all = join_parameters(about, model, parameters, sizes_of(about, origin));
  const auto files = files_of(all, file_bytes);
  nlohmann::ordered_json index{{"metadata", {{"total_size", 0}}},
                               {"weight_map", nlohmann::ordered_json::object()}};
  std::size_t total = 0;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::string name = files.size() == 1
                                 ? weights_file
                                 : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, files.size());
    std::vector<safetensors_writer::tensor> tensors;
    for (const joined* j : files[i]) {
      tensors.push_back(j->as);
      index["weight_map"][j->as.name] = name;
      total += bytes_of(*j);
    }
    safetensors_writer out(folder / name, tensors, {{"format", "pt"}});
    for (const joined* j : files[i]) append(out, *j, from, origin);
    out.close();
  }
  index["metadata"]["total_size"] = total;
  if (files.size() > 1) write_durably(folder / weights_index_file, index.dump(2) + "\n");
  write_durably(folder / config_file, config_text(about, model, torch_name_of(all.front().as.type),
                                                  origin != nullptr ? &origin->config() : nullptr));
  if (origin_folder)
    for (const std::string& name : copied_files(*origin_folder))
      write_durably(folder / name, contents_of_file(*origin_folder / name, 1, largest_copied));
}

}  // namespace rankc::runtime
