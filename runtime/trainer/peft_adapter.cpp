// SPDX-License-Identifier: Apache-2.0
#include "peft_adapter.hpp"

#include "hugging_face_tensors.hpp"
#include "json_file.hpp"
#include "weights_names.hpp"
#include <rankc/runtime/durable.hpp>
#include <rankc/trainer/checksum.hpp>
#include <rankc/trainer/model_files.hpp>

#include <nlohmann/json.hpp>
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace rankc::runtime {
namespace {

using nlohmann::ordered_json;

constexpr const char* config_checksum = "rankc_config";  // in the metadata of the weights
constexpr const char* key_begin = "base_model.model.";

/// One adapter of the plan: of a whole module, or of a part of one.
struct low_rank {
  const global_parameter *a = nullptr, *b = nullptr;
};

/// A module with adapters. PEFT has one adapter for a module. Where the module joins parameters of the plan,
/// their adapters become one, whose rank is the sum of their ranks. Its A has the rows of all. Its B has the
/// columns of each part in the rows of that part, and zeros elsewhere.
struct adapted_module {
  std::string name;
  tensor_rule rule;
  std::size_t rows = 0, columns = 0, rank = 0;  // rows: of each part
  std::vector<low_rank> parts;
};

std::string module_of(const std::string& tensor) { return tensor.substr(0, tensor.rfind('.')); }

/// The name of a module in every layer: what follows the number of its layer.
std::string name_in_layers(const std::string& module) {
  const auto number = module.find_first_of("0123456789"), end = module.find('.', number);
  const bool is_in_layer = number != module.npos && end != module.npos;
  return is_in_layer ? module.substr(end + 1) : module;
}

[[noreturn]] void refuse(const description& about, const std::string& parameter, const std::string& why) {
  throw failure(
      1,
      "RC6524: plan {}: {} has no form in PEFT's adapters, because {}; give --merge, which adds the "
      "adapters to the weights, or --format safetensors",
      about.name, parameter, why);
}

std::vector<adapted_module> adapted_modules(const description& about, const model_family& family,
                                            const std::vector<global_parameter>& all,
                                            const free_sizes& sizes) {
  std::vector<adapted_module> modules;
  for (const global_parameter& p : all) {
    const low_rank beside{find_parameter(all, p.name + lora_a), find_parameter(all, p.name + lora_b)};
    if (beside.a == nullptr || beside.b == nullptr) continue;
    const named_rule named = rule_of(family, about.name, p.name);
    if (named.rule.of_experts()) refuse(about, p.name, "a module there has the weights of one expert");
    const std::string module = module_of(named.theirs);
    auto at = std::find_if(modules.begin(), modules.end(),
                           [&](const adapted_module& m) { return m.name == module; });
    if (at == modules.end()) {
      const bool is_table = named.rule.rows == rows_of::vocabulary;
      const std::size_t rows = is_table ? std::min(p.rows, sizes.vocabulary) : p.rows;
      at = modules.insert(
          modules.end(),
          {.name = module, .rule = named.rule, .rows = rows, .columns = p.columns, .parts = {}});
      at->parts.resize(named.rule.parts);
    }
    at->parts[named.rule.part] = beside;
    at->rank += beside.a->rows;
  }
  return modules;
}

/// The parameters of the modules that are trained whole.
std::vector<global_parameter> parameters_of_whole_modules(const description& about,
                                                          const model_family& family,
                                                          const std::vector<global_parameter>& all,
                                                          const std::vector<adapted_module>& adapted) {
  std::set<std::string> modules;
  for (const global_parameter& p : all) {
    if (!p.trained || is_beside(p, all)) continue;
    const named_rule named = rule_of(family, about.name, p.name);
    const std::string module = module_of(named.theirs);
    const bool is_table = named.rule.rows == rows_of::vocabulary;
    if (named.rule.of_experts()) refuse(about, p.name, "a module there has the weights of one expert");
    if (is_table && find_parameter(all, "lm_head") == nullptr)
      refuse(about, p.name, "it is the head's weight, too");
    for (const adapted_module& m : adapted)
      if (m.name == module) refuse(about, p.name, "its module " + module + " has an adapter");
    modules.insert(module);
  }
  std::vector<global_parameter> of_modules;
  for (const global_parameter& p : all)
    if (!is_beside(p, all) && modules.contains(module_of(rule_of(family, about.name, p.name).theirs)))
      of_modules.push_back(p);
  return of_modules;
}

std::vector<double> values_of(const tensor_source& from, const global_parameter& p) {
  std::vector<double> values(p.count());
  from.read(p.name, {0, p.rows, 0, p.columns}, values.data());
  return values;
}

/// Append A and then B. Shapes: A (rank, columns), B (rows of all parts, rank).
void append(safetensors_writer& out, const adapted_module& m, const tensor_source& from) {
  for (const low_rank& part : m.parts)
    if (part.a != nullptr) {
      const std::vector<double> a = values_of(from, *part.a);
      out.append(a.data(), a.size());
    }
  std::size_t first = 0;
  for (const low_rank& part : m.parts) {
    std::vector<double> rows(m.rows * m.rank);
    if (part.b != nullptr) {
      const std::vector<double> b = values_of(from, *part.b);
      const std::size_t rank = part.b->columns;
      for (std::size_t i = 0; i < m.rows; ++i)
        std::copy_n(b.begin() + static_cast<std::ptrdiff_t>(i * rank), rank,
                    rows.begin() + static_cast<std::ptrdiff_t>(i * m.rank + first));
      first += rank;
    }
    out.append(rows.data(), rows.size());
  }
}

/// A number as JSON has it: whole where it is whole, since PEFT's alpha is.
ordered_json number_of(double x) {
  if (x == std::round(x)) return static_cast<std::int64_t>(x);
  return x;
}

std::string config_text_of(const std::vector<adapted_module>& adapted, const std::vector<joined>& whole,
                           double scale, const std::string& base) {
  std::set<std::string> targets, saved;
  const std::size_t rank = adapted.front().rank;
  ordered_json ranks = ordered_json::object(), alphas = ranks;
  bool is_transposed = false;
  for (const adapted_module& m : adapted) {
    const std::string name = name_in_layers(m.name);
    targets.insert(name);
    is_transposed = is_transposed || m.rule.transposed;
    if (m.rank == rank) continue;
    ranks[name] = m.rank;
    alphas[name] = number_of(scale * static_cast<double>(m.rank));
  }
  for (const joined& j : whole) saved.insert(name_in_layers(module_of(j.as.name)));
  const ordered_json config{{"peft_type", "LORA"},
                            {"task_type", "CAUSAL_LM"},
                            {"base_model_name_or_path", base.empty() ? ordered_json() : ordered_json(base)},
                            {"inference_mode", true},
                            {"r", rank},
                            {"lora_alpha", number_of(scale * static_cast<double>(rank))},
                            {"lora_dropout", 0.0},
                            {"bias", "none"},
                            {"fan_in_fan_out", is_transposed},
                            {"target_modules", targets},
                            {"modules_to_save", saved.empty() ? ordered_json() : ordered_json(saved)},
                            {"rank_pattern", ranks},
                            {"alpha_pattern", alphas}};
  return config.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

void write_peft_adapter(const description& about, const std::vector<global_parameter>& all,
                        const tensor_source& from, const std::optional<std::filesystem::path>& origin_folder,
                        const std::string& base, const std::filesystem::path& folder) {
  const described_model model = model_of(about);
  std::optional<hugging_face_origin> origin;
  if (origin_folder) origin.emplace(about, model, *origin_folder);
  const free_sizes sizes = sizes_of(about, origin ? &*origin : nullptr);
  const std::vector<adapted_module> adapted = adapted_modules(about, *model.family, all, sizes);
  const std::vector<global_parameter> of_modules =
      parameters_of_whole_modules(about, *model.family, all, adapted);
  std::vector<joined> whole = join_parameters(about, model, of_modules, sizes);
  std::vector<safetensors_writer::tensor> tensors;
  const dtype type = type_of_files(about);
  for (const adapted_module& m : adapted) {
    tensors.push_back({key_begin + m.name + ".lora_A.weight", {m.rank, m.columns}, type});
    tensors.push_back({key_begin + m.name + ".lora_B.weight", {m.rows * m.parts.size(), m.rank}, type});
  }
  const std::string config = config_text_of(adapted, whole, about.lora_scale, base);
  for (const joined& j : whole) {
    tensors.push_back(j.as);
    tensors.back().name = key_begin + j.as.name;
  }
  safetensors_writer out(folder / adapter_file, tensors,
                         {{"format", "pt"}, {config_checksum, checksum::of(config)}});
  for (const adapted_module& m : adapted) append(out, m, from);
  for (const joined& j : whole) append(out, j, from, origin ? &*origin : nullptr);
  out.close();
  write_durably(folder / adapter_config_file, config);
}

bool is_our_adapter_config(const std::filesystem::path& file) {
  const text_map stored = safetensors_reader(file.parent_path() / adapter_file).metadata();
  const auto sum = stored.find(config_checksum);
  return sum != stored.end() && sum->second == checksum::of(contents_of_file(file, 2, settings_limits.bytes));
}

}  // namespace rankc::runtime
