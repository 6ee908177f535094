// SPDX-License-Identifier: Apache-2.0
#include "hugging_face_config.hpp"

#include "json_checksum.hpp"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

namespace rankc::runtime {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* rotary_keys[]{"rope_parameters", "rope_scaling"};
constexpr const char* checksum_key = "rankc_checksum";

/// The value of a key. Transformers 5 has the keys of rotary positions in one object; earlier versions have
/// them, or some of them, at the top.
const json& find(const json& config, const std::string& key) {
  if (config.contains(key)) return config[key];
  for (const char* rotary : rotary_keys) {
    const json& inner = value_of(config, rotary);
    if (inner.contains(key)) return inner[key];
    if (key == "rope_type" && inner.contains("type")) return inner["type"];
  }
  return value_of(config, key);
}

/// Whether a key states how rotary positions are scaled.
bool is_of_positions(std::string_view key) {
  return key == "rope_type" || key == "factor" || key == "low_freq_factor" || key == "high_freq_factor" ||
         key == "original_max_position_embeddings";
}

/// The value that a config has for a rule, or the value that a missing one means; null where there is
/// neither.
json found_by(const config_rule& rule, const json& config) {
  if (const json& given = find(config, std::string(rule.key)); !given.is_null()) return given;
  if (rule.follows != nullptr) return rule.follows(config);
  return rule.missing.empty() ? json() : json::parse(rule.missing);
}

json expected_by(const config_rule& rule, const json& sizes) {
  return rule.ours.empty() ? json::parse(rule.value) : sizes.at(std::string(rule.ours));
}

/// Whether any value is accepted for a rule: the plan does not use it, or transformers ignores the key with
/// this scaling of positions.
bool is_free(const config_rule& rule, const json& sizes) {
  const json expected = expected_by(rule, sizes);
  return (rule.may_be_free && expected == 0) || (is_of_positions(rule.key) && expected.is_null());
}

/// Collects the differences of a config from a plan.
class comparison {
 public:
  comparison(const description& about, const json& config) : about_(about), config_(config) {}

  void check_objects() {
    for (const char* key : rotary_keys)
      if (const json& found = value_of(config_, key); !found.is_null() && !found.is_object())
        add(key, found, "an object");
  }

  void check(const config_rule& rule, const json& sizes) {
    if (is_free(rule, sizes)) return;
    const json found = found_by(rule, config_), expected = expected_by(rule, sizes);
    if (rule.key == vocabulary_key) check_vocabulary(found);
    else if (found != expected) add(rule.key, found, shown(expected));
  }

  std::size_t positions(std::string_view key) {
    const json& found = find(config_, std::string(key));
    const auto count = value_as<std::size_t>(found);
    if (!count || *count < static_cast<std::size_t>(about_.seq))
      add(key, found, fmt::format("at least {}", about_.seq));
    return count.value_or(0);
  }

  std::size_t vocabulary() const { return vocabulary_; }
  const std::vector<std::string>& differences() const { return differences_; }

 private:
  static constexpr std::string_view vocabulary_key = "vocab_size";

  /// A folder may have the rows that pad the plan's vocabulary, or lack them.
  void check_vocabulary(const json& found) {
    vocabulary_ = value_as<std::size_t>(found).value_or(0);
    const auto used = static_cast<std::size_t>(about_.vocab_used),
               all = static_cast<std::size_t>(about_.vocab);
    if (vocabulary_ == used || vocabulary_ == all) return;
    add(vocabulary_key, found, used == all ? fmt::format("{}", all) : fmt::format("{} or {}", used, all));
  }

  void add(std::string_view key, const json& found, std::string_view expected) {
    differences_.push_back(fmt::format("{} is {}, expected {}", key, shown(found), expected));
  }

  const description& about_;
  const json& config_;
  std::size_t vocabulary_ = 0;
  std::vector<std::string> differences_;
};

constexpr const char *coefficient_key = "router_aux_loss_coef", *router_key = "output_router_logits";

/// The coefficient of the plan's balance loss as transformers has it; 0 where the plan has no such loss.
double balance_loss(const json& sizes) {
  return value_as<double>(value_of(sizes, "balance_loss")).value_or(0);
}

/// Set the balance loss of a plan that trains with one.
void set_balance(ordered_json& config, double balance) {
  if (balance == 0) return;
  config[coefficient_key] = balance;
  config[router_key] = true;
}

/// The config of a plan alone.
ordered_json config_of_plan(const description& about, const described_model& model) {
  const json sizes = json::parse(model.sizes);
  ordered_json config{{"architectures", {model.family->architecture}}, {"model_type", model.family->name}};
  for (const config_rule& rule : model.family->config) {
    if (is_free(rule, sizes)) continue;
    const json value = expected_by(rule, sizes);
    const std::string key(rule.key);
    if (rule.key == "rope_theta") config[key] = config["rope_parameters"][key] = value;
    else if (is_of_positions(rule.key)) config["rope_parameters"][key] = value;
    else config[key] = value;
  }
  if (config.contains("rope_parameters") && config["rope_parameters"]["rope_type"] != "default")
    config["rope_scaling"] = config["rope_parameters"];  // transformers 4 looks there
  for (const config_default& value : model.family->defaults)
    config[std::string(value.key)] = json::parse(value.value);
  if (model.experts > 0) config[router_key] = false;
  config["vocab_size"] = about.vocab_used;
  config[std::string(model.family->positions)] = about.seq;
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

described_model model_of(const description& about) {
  const json root = json::parse(about.json, nullptr, false);
  const json sizes = root.is_object() ? root.value("model", json()) : json();
  const model_family* family = sizes.is_object() ? find_family(sizes.value("family", "")) : nullptr;
  if (family == nullptr)
    throw failure(1, "RC6535: plan {}: no Hugging Face mapping for this model; supported: {}", about.name,
                  family_names());
  return {family, sizes.dump(), sizes.value("experts", std::size_t{0})};
}

free_sizes check_config(const description& about, const described_model& model,
                        const std::filesystem::path& file) {
  const auto config = read_json<json>(file, 1, settings_limits);
  if (!config.is_object()) throw failure(1, "RC6536: Hugging Face config {} is not a JSON object", file);
  if (const json& type = value_of(config, "model_type"); type != model.family->name)
    throw failure(1, "RC6537: {}: model_type is {}, but plan {} is a {} model", file, shown(type), about.name,
                  model.family->name);
  const json sizes = json::parse(model.sizes);
  comparison with_plan(about, config);
  with_plan.check_objects();
  for (const config_rule& rule : model.family->config) with_plan.check(rule, sizes);
  const std::size_t positions = with_plan.positions(model.family->positions);
  if (!with_plan.differences().empty())
    throw failure(1, "RC6538: {} does not match plan {}: {}", file, about.name,
                  fmt::format("{}", fmt::join(with_plan.differences(), "; ")));
  return {positions, with_plan.vocabulary()};
}

std::vector<std::string> notes_on_config(const description& about, const described_model& model,
                                         const std::filesystem::path& file) {
  const auto config = read_json<json>(file, 1, settings_limits);
  const double balance = balance_loss(json::parse(model.sizes));
  const json& coefficient = value_of(config, coefficient_key);
  if (model.experts == 0 || value_of(config, router_key) != true || coefficient == balance) return {};
  return {
      say("RC6642: {}: transformers trains this model with {} {}, and plan {} with a balance loss of {}; "
          "the plan's is used",
          file, coefficient_key, shown(coefficient), about.name, fmt::format("{}", balance))};
}

std::string config_text(const description& about, const described_model& model, const std::string& dtype,
                        const ordered_json* origin) {
  ordered_json config = origin != nullptr ? *origin : config_of_plan(about, model);
  config.erase(checksum_key);
  set_balance(config, balance_loss(json::parse(model.sizes)));
  config["architectures"] = ordered_json::array({model.family->architecture});
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
