// SPDX-License-Identifier: Apache-2.0
#include "hugging_face_config.hpp"

#include "json_checksum.hpp"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <algorithm>
#include <vector>

namespace rankc::runtime {
namespace {

using nlohmann::json;

/// A value by its key: of transformers 5, where those of rotary positions are together, or of earlier ones.
json find(const json& config, const std::string& key) {
  if (config.contains(key)) return config[key];
  for (const char* rotary : {"rope_parameters", "rope_scaling"})
    if (config.contains(rotary) && config[rotary].is_object()) {
      if (config[rotary].contains(key)) return config[rotary][key];
      if (key == "rope_type" && config[rotary].contains("type")) return config[rotary]["type"];
    }
  return {};
}

/// Whether it says how rotary positions are slowed.
bool is_of_positions(std::string_view key) {
  return key == "rope_type" || key == "factor" || key == "low_freq_factor" || key == "high_freq_factor" ||
         key == "original_max_position_embeddings";
}

/// The value that a config gives for a rule; where it gives none, the one that the rule puts in its place, or
/// null.
json found_by(const config_rule& rule, const json& config) {
  if (json given = find(config, std::string(rule.key)); !given.is_null()) return given;
  if (rule.follows != nullptr) return rule.follows(config);
  return rule.missing.empty() ? json() : json::parse(rule.missing);
}

json expected_by(const config_rule& rule, const json& sizes) {
  return rule.ours.empty() ? json::parse(rule.value) : sizes.at(std::string(rule.ours));
}

/// Whether the plan says nothing of a value.
bool is_free(const config_rule& rule, const json& sizes) {
  return rule.may_be_free && expected_by(rule, sizes) == 0;
}

}  // namespace

described_model model_of(const description& about) {
  const json root = json::parse(about.json, nullptr, false);
  const json sizes = root.is_object() ? root.value("model", json()) : json();
  const model_family* family = sizes.is_object() ? find_family(sizes.value("family", "")) : nullptr;
  if (family == nullptr)
    throw failure(1, "RC6535: plan {}: no Hugging Face mapping for this model; supported: {}", about.name,
                  family_names());
  return {family, sizes.dump(), sizes.value("experts", std::size_t{0})};
}

std::size_t check_config(const description& about, const described_model& model,
                         const std::filesystem::path& file) {
  const json config = json::parse(contents_of_file(file, 1), nullptr, false),
             sizes = json::parse(model.sizes);
  if (!config.is_object()) throw failure(1, "RC6536: Hugging Face config {} is not a JSON object", file);
  if (const json type = config.value("model_type", json()); type != model.family->name)
    throw failure(1, "RC6537: {}: model_type is {}, but plan {} is a {} model", file, type.dump(), about.name,
                  model.family->name);
  std::vector<std::string> differences;
  const auto differs = [&](std::string_view key, const json& found, const json& expected) {
    differences.push_back(fmt::format("{} is {}, expected {}", key, found.dump(), expected.dump()));
  };
  for (const config_rule& rule : model.family->config) {
    if (is_free(rule, sizes)) continue;
    const json found = found_by(rule, config);
    if (const json expected = expected_by(rule, sizes); found != expected) differs(rule.key, found, expected);
  }
  const json positions = find(config, std::string(model.family->positions));
  if (!positions.is_number_unsigned() || positions < about.seq)
    differences.push_back(
        fmt::format("{} is {}, expected at least {}", model.family->positions, positions.dump(), about.seq));
  if (!differences.empty())
    throw failure(1, "RC6538: {} does not match plan {}: {}", file, about.name,
                  fmt::format("{}", fmt::join(differences, "; ")));
  return positions.get<std::size_t>();
}

std::string config_text(const description& about, const described_model& model, const std::string& dtype) {
  const json sizes = json::parse(model.sizes);
  nlohmann::ordered_json config{{"architectures", {model.family->architecture}},
                                {"model_type", model.family->name}};
  for (const config_rule& rule : model.family->config) {
    if (is_free(rule, sizes)) continue;
    const json value = expected_by(rule, sizes);
    const std::string key(rule.key);
    if (rule.key == "rope_theta") config[key] = config["rope_parameters"][key] = value;
    else if (!is_of_positions(rule.key)) config[key] = value;
    else if (!value.is_null()) config["rope_parameters"][key] = value;
  }
  if (config.contains("rope_parameters") && config["rope_parameters"]["rope_type"] != "default")
    config["rope_scaling"] = config["rope_parameters"];  // where transformers 4 looks
  config[std::string(model.family->positions)] = about.seq;
  // A plan knows no such tokens, and theirs may not be in its vocabulary.
  config["eos_token_id"] = nullptr;
  config["bos_token_id"] = nullptr;
  config["torch_dtype"] = dtype;
  return config.dump(2) + "\n";
}

bool is_config_text(std::string_view text) {
  // A line by hand, or a program that wrote it anew, leaves another beginning or end.
  const std::size_t end =
      text.rfind("\n  \"eos_token_id\": null,\n  \"bos_token_id\": null,\n  \"torch_dtype\": ");
  return text.starts_with("{\n  \"architectures\": [") && end != text.npos &&
         std::count(text.begin() + static_cast<std::ptrdiff_t>(end), text.end(), '\n') == 5;
}

}  // namespace rankc::runtime
