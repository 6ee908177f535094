// SPDX-License-Identifier: Apache-2.0
#include "hugging_face_config.hpp"

#include "json/json_checksum.hpp"
#include "json/json_file.hpp"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

namespace rankc::runtime {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* rotary_objects[]{"rope_parameters", "rope_scaling"};
constexpr const char* checksum_key = "rankc_checksum";

/// The value of a rule's key; null if there is none. Transformers 5 stores the keys of rotary positions in
/// one object, or in one for each kind of layers; earlier versions store some or all of them at the top
/// level, where those of a second kind of layers have other names.
const json& find(const json& config, const config_rule& rule) {
  if (!rule.layers.empty()) {
    const json& of_layers = value_of(value_of(config, rotary_objects[0]), rule.layers);
    if (of_layers.contains(rule.key)) return of_layers[rule.key];
    if (!rule.rotary) return value_of(config, rule.also);
  }
  if (const json& given = value_of(config, rule.key); !given.is_null()) return given;
  for (const char* object : rotary_objects) {
    if (!rule.rotary) break;
    const json& inner = value_of(config, object);
    if (inner.contains(rule.key)) return inner[rule.key];
    if (rule.key == "rope_type" && inner.contains("type")) return inner["type"];
  }
  return value_of(config, rule.also);
}

/// A size in a config; empty if it is missing, of another type or larger than any model's.
std::optional<std::int64_t> size_in(const json& config, const std::string& key) {
  constexpr std::int64_t largest = std::int64_t{1} << 40;
  const auto size = value_as<std::int64_t>(value_of(config, key));
  return size && *size > 0 && *size <= largest ? size : std::nullopt;
}

/// The value that a null key means, computed from other values of the config; null if they are no sizes.
json product(const config_rule& rule, const json& config) {
  if (rule.factor == 1 && rule.over.empty()) return value_of(config, rule.of);
  const auto of = size_in(config, rule.of), over = rule.over.empty() ? 1 : size_in(config, rule.over);
  return of && over ? json(rule.factor * *of / *over) : json();
}

/// A config's value for a rule, or the value that a missing key means; null if there is neither.
json found_by(const config_rule& rule, const json& config) {
  if (const json& given = find(config, rule); !given.is_null()) return given;
  const bool is_there = config.contains(rule.key);
  if (rule.nullable && is_there) return nullptr;
  if (!rule.of.empty() && (is_there || rule.missing.is_null())) return product(rule, config);
  return rule.missing;
}

/// Collects the differences between a config and a plan.
class comparison {
 public:
  comparison(const description& about, const json& config) : about_(about), config_(config) {}

  void check_objects() {
    for (const char* key : rotary_objects)
      if (const json& found = value_of(config_, key); !found.is_null() && !found.is_object())
        add(key, found, "an object");
  }

  void check(const config_rule& rule) {
    const json found = found_by(rule, config_);
    const std::string key = rule.layers.empty() ? rule.key : rule.layers + "." + rule.key;
    if (found != rule.value) add(key, found, shown(rule.value));
  }

  /// The padding rows of the plan's vocabulary may be present in a folder or absent.
  std::size_t vocabulary(const std::string& key) {
    const json& found = value_of(config_, key);
    const auto rows = value_as<std::size_t>(found).value_or(0);
    const auto used = static_cast<std::size_t>(about_.vocab_used),
               all = static_cast<std::size_t>(about_.vocab);
    if (rows != used && rows != all)
      add(key, found, used == all ? fmt::format("{}", all) : fmt::format("{} or {}", used, all));
    return rows;
  }

  std::size_t positions(const std::string& key) {
    const json& found = value_of(config_, key);
    const auto count = value_as<std::size_t>(found);
    if (!count || *count < static_cast<std::size_t>(about_.seq))
      add(key, found, fmt::format("at least {}", about_.seq));
    return count.value_or(0);
  }

  const std::vector<std::string>& differences() const { return differences_; }

 private:
  void add(std::string_view key, const json& found, std::string_view expected) {
    differences_.push_back(fmt::format("{} is {}, expected {}", key, shown(found), expected));
  }

  const description& about_;
  const json& config_;
  std::vector<std::string> differences_;
};

/// Sets the balance loss if the plan trains with one.
void set_balance(ordered_json& config, const balance_keys& balance) {
  if (balance.value == 0) return;
  config[balance.coefficient] = balance.value;
  config[balance.enabled] = true;
}

/// Sets a value of rotary positions where transformers 5 reads it. Transformers 4 reads the base at the top
/// level.
void set_rotary(ordered_json& config, const config_rule& rule) {
  if (rule.rotary && rule.key == "rope_theta") config[rule.key] = rule.value;
  if (!rule.also.empty()) config[rule.also] = rule.value;
  ordered_json& all = config[rotary_objects[0]];
  (rule.layers.empty() ? all : all[rule.layers])[rule.key] = rule.value;
}

/// Repeats a scaling of rotary positions in the key that transformers 4 reads.
void repeat_scaling(ordered_json& config) {
  const ordered_json& all = value_of(config, rotary_objects[0]);
  const ordered_json& of_most = all.contains("full_attention") ? all["full_attention"] : all;
  if (value_of(of_most, "rope_type").is_string() && of_most["rope_type"] != "default")
    config[rotary_objects[1]] = of_most;
}

/// The config from a plan alone, without an origin.
ordered_json config_of_plan(const description& about, const hugging_face_model& model) {
  ordered_json config{{"architectures", {model.architecture}}, {"model_type", model.type}};
  for (const config_rule& rule : model.config) {
    if (rule.rotary || !rule.layers.empty()) set_rotary(config, rule);
    else config[rule.key] = rule.value;
  }
  repeat_scaling(config);
  for (const config_rule& rule : model.exported) config[rule.key] = rule.value;
  if (!model.balance.enabled.empty()) config[model.balance.enabled] = false;
  config[model.vocabulary] = about.vocab_used;
  config[model.positions] = about.seq;
  config["eos_token_id"] = nullptr;
  config["bos_token_id"] = nullptr;
  return config;
}

std::string checksum_of_config(ordered_json config) {
  config.erase(checksum_key);
  return checksum::of(config.dump());
}

std::string text_of(const ordered_json& config) { return config.dump(2) + "\n"; }

}  // namespace

free_sizes check_config(const description& about, const hugging_face_model& model,
                        const std::filesystem::path& file) {
  const auto config = read_json<json>(file, 1, settings_limits);
  if (!config.is_object()) throw failure(1, "RC6536: Hugging Face config {} is not a JSON object", file);
  if (const json& type = value_of(config, "model_type"); type != model.type)
    throw failure(1, "RC6537: {}: model_type is {}, but plan {} is a {} model", file, shown(type), about.name,
                  model.type);
  comparison with_plan(about, config);
  with_plan.check_objects();
  free_sizes sizes{};
  sizes.vocabulary = with_plan.vocabulary(model.vocabulary);
  for (const config_rule& rule : model.config) with_plan.check(rule);
  sizes.positions = with_plan.positions(model.positions);
  if (!with_plan.differences().empty())
    throw failure(1, "RC6538: {} does not match plan {}: {}", file, about.name,
                  fmt::format("{}", fmt::join(with_plan.differences(), "; ")));
  return sizes;
}

std::vector<std::string> notes_on_config(const description& about, const hugging_face_model& model,
                                         const std::filesystem::path& file) {
  const auto config = read_json<json>(file, 1, settings_limits);
  const auto& [key, enabled, balance] = model.balance;
  const json& coefficient = value_of(config, key);
  if (key.empty() || value_of(config, enabled) != true || coefficient == balance) return {};
  return {
      say("RC6642: {}: transformers trains this model with {} {}, and plan {} with a balance loss of {}; "
          "rankc uses the plan's",
          file, key, shown(coefficient), about.name, fmt::format("{}", balance))};
}

std::string config_text(const description& about, const hugging_face_model& model, const std::string& dtype,
                        const ordered_json* origin) {
  ordered_json config = origin != nullptr ? *origin : config_of_plan(about, model);
  config.erase(checksum_key);
  set_balance(config, model.balance);
  config["architectures"] = ordered_json::array({model.architecture});
  if (about.end_of_document >= 0 && value_of(config, "eos_token_id").is_null())
    config["eos_token_id"] = about.end_of_document;
  if (config.contains("dtype")) config["dtype"] = dtype;
  config["torch_dtype"] = dtype;
  config[checksum_key] = checksum_of_config(config);
  return text_of(config);
}

bool is_config_text(std::string_view text) try {
  const auto config = parse_json<ordered_json>(text, "config.json", 1, settings_limits);
  return text == text_of(config) && value_of(config, checksum_key) == checksum_of_config(config);
} catch (const failure&) {
  return false;
}

}  // namespace rankc::runtime
