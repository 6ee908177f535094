// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/export.hpp>

#include "export_folder.hpp"
#include "hugging_face_export.hpp"
#include "hugging_face_names.hpp"
#include "hugging_face_origin.hpp"
#include "merged_source.hpp"
#include "peft_adapter.hpp"
#include "weights_names.hpp"
#include <rankc/trainer/checkpoint.hpp>
#include <rankc/trainer/parameters.hpp>
#include <rankc/trainer/safetensors.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rankc::runtime {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t block_elements = std::size_t{1} << 20;

void write_one_file(const description& about, const std::vector<global_parameter>& parameters,
                    const tensor_source& in, const fs::path& file) {
  std::vector<safetensors_writer::tensor> tensors;
  for (const global_parameter& p : parameters)
    tensors.push_back({p.name, p.shape(), about.type == dtype::f64 ? dtype::f64 : dtype::f32});
  safetensors_writer to(file, tensors, {{"format", "pt"}});
  std::vector<double> values;
  for (const global_parameter& p : parameters) {
    const std::size_t rows = std::max<std::size_t>(1, block_elements / std::max<std::size_t>(1, p.columns));
    for (std::size_t first = 0; first < p.rows; first += rows) {
      const area block{first, std::min(rows, p.rows - first), 0, p.columns};
      values.resize(block.count());
      in.read(p.name, block, values.data());
      to.append(values.data(), values.size());
    }
  }
  to.close();
}

/// The base model in an adapter's config: the folder that the run began with, or that --source names. Empty
/// if that is no Hugging Face folder; `notes` then gets a sentence.
std::string base_model(const std::string& init, const std::optional<fs::path>& origin,
                       const export_options& how, std::vector<std::string>& notes) {
  if (origin && (!how.source.empty() || is_hugging_face(init)))
    return fs::absolute(*origin).lexically_normal().string();
  notes.push_back(
      say("RC6527: {} names no base model, because the run began with {}, which is no Hugging Face "
          "folder; set base_model_name_or_path to a Hugging Face folder of these weights",
          adapter_config_file, init));
  return "";
}

}  // namespace

fs::path export_weights(const description& about, const fs::path& checkpoint, const fs::path& out,
                        const export_options& how, std::vector<std::string>* notes) {
  const bool is_one_file = how.format == export_format::safetensors,
             is_adapter = !is_one_file && about.lora_scale != 0 && !how.merge;
  const fs::path from_folder = find_checkpoint(checkpoint);
  const std::optional<fs::path> origin =
      is_one_file ? std::nullopt : find_origin(about, from_folder, how.source);
  refuse_other_models(out, is_adapter ? std::nullopt : origin);
  const std::vector<global_parameter> all = global_parameters(about);
  if (how.merge && about.lora_scale == 0)
    throw failure(1, "RC6520: --merge: plan {} has no LoRA adapters to merge; remove the option", about.name);
  if (!is_one_file) check_hugging_face_names(about, all);
  std::unique_ptr<tensor_source> in = open_weights(about, from_folder), merged;
  std::vector<global_parameter> written = all;
  if (how.merge) {
    merged = std::make_unique<merged_source>(*in, all, about.lora_scale);
    std::erase_if(written, [&](const global_parameter& p) { return is_beside(p, all); });
  }
  const tensor_source& from = merged != nullptr ? *merged : *in;
  std::vector<std::string> told = from.notes();
  for (std::string& note : prepare_save(out)) told.push_back(std::move(note));
  std::string base;
  if (is_adapter) base = base_model(read_run_state(about, from_folder / run_file).init, origin, how, told);
  if (notes != nullptr) *notes = std::move(told);
  output_folder to(out, checkpoint_code);
  if (is_one_file) write_one_file(about, written, from, to.unfinished() / weights_file);
  else if (is_adapter) write_peft_adapter(about, all, from, origin, base, to.unfinished());
  else write_hugging_face(about, written, from, origin, to.unfinished(), how.file_bytes);
  replace_model(to);
  return is_one_file ? out / weights_file : out;
}

}  // namespace rankc::runtime
