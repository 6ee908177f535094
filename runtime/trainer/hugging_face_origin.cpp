// SPDX-License-Identifier: Apache-2.0
#include "hugging_face_origin.hpp"

#include "json/json_file.hpp"
#include "weights_names.hpp"
#include <rankc/trainer/checkpoint.hpp>
#include <rankc/trainer/command_line.hpp>
#include <rankc/trainer/model_files.hpp>

namespace rankc::runtime {
namespace {

namespace fs = std::filesystem;

constexpr int longest_chain = 64;
constexpr const char* names_copied[]{
    "added_tokens.json", "chat_template.jinja",     "chat_template.json", "generation_config.json",
    "merges.txt",        "special_tokens_map.json", "tekken.json",        "tokenizer.json",
    "tokenizer.model",   "tokenizer_config.json",   "vocab.json"};

}  // namespace

std::optional<fs::path> find_origin(const description& about, const fs::path& checkpoint,
                                    const std::string& asked) {
  if (asked == "none") return std::nullopt;
  if (!asked.empty() && !is_hugging_face(asked))
    throw failure(
        1, "RC6521: --source {} has no {}; name the Hugging Face folder that the run began with, or none",
        asked, config_file);
  if (!asked.empty()) return asked;
  fs::path at = checkpoint;
  for (int length = 0; length < longest_chain; ++length) {
    const std::string init = read_run_state(about, at / run_file).init;
    if (init.empty() || hash_seed(init)) return std::nullopt;
    if (!is_there(init, 1))
      throw failure(
          1,
          "RC6522: the run began with {}, which does not exist here; an export copies from a Hugging Face "
          "folder what the plan does not hold. Give --source DIR for its present place, or --source none",
          init);
    if (is_hugging_face(init)) return init;
    const std::vector<fs::path> checkpoints = find_checkpoints(init);
    if (checkpoints.empty()) return std::nullopt;  // a weights file with the plan's names
    at = checkpoints.front();
  }
  throw failure(1,
                "RC6523: {} began with a checkpoint, which began with another, and so on for {} checkpoints; "
                "give --source",
                checkpoint, longest_chain);
}

hugging_face_origin::hugging_face_origin(const description& about, const hugging_face_model& model,
                                         const fs::path& folder)
    : config_(read_json<nlohmann::ordered_json>(folder / config_file, 1, settings_limits)),
      sizes_(check_config(about, model, folder / config_file)),
      files_(model, folder) {}

void hugging_face_origin::read(const std::string& name, const area& rows, double* to) {
  const std::string there = files_.name_of(name);
  const auto& shapes = files_.tensors().shapes();
  const auto found = shapes.find(there);
  if (found == shapes.end() || found->second != std::vector{sizes_.positions, rows.columns})
    throw failure(1, "RC6526: {}: tensor {} does not have the {} rows that its {} states",
                  files_.tensors().name(), there, sizes_.positions, config_file);
  files_.tensors().check(there, rows);
  files_.tensors().read(there, rows, to);
}

std::vector<std::string> copied_files(const fs::path& folder) {
  std::vector<std::string> found;
  for (const char* name : names_copied)
    if (is_there(folder / name, 1)) found.emplace_back(name);
  return found;
}

}  // namespace rankc::runtime
