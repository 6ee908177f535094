// SPDX-License-Identifier: Apache-2.0
#include "peft_adapter.hpp"

#include "hugging_face_tensors.hpp"
#include "json/json_file.hpp"
#include "source_in_files.hpp"
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

constexpr const char* config_checksum = "rankc_config";  // the key in the metadata of the weights
constexpr const char* key_begin = "base_model.model.";

/// A weight of a module, and its adapter in the plan. `a` and `b` are null without an adapter.
struct adapted_part {
  std::size_t rows;  // in the files
  const global_parameter *a, *b;
};

/// A module with adapters. PEFT has one adapter per module. If the module joins parameters of the plan, their
/// adapters become one, whose rank is the sum of their ranks. Its A stacks the rows of all. Its B has the
/// columns of each part in the rows of that part, and zeros elsewhere.
struct adapted_module {
  std::string name;
  bool transposed;
  std::size_t columns, rank;
  std::vector<adapted_part> parts;
  std::size_t rows() const {
    std::size_t rows = 0;
    for (const adapted_part& part : parts) rows += part.rows;
    return rows;
  }
};

std::string module_of(const std::string& tensor) { return tensor.substr(0, tensor.rfind('.')); }

/// The layer-independent name of a module: the text after its layer number.
std::string name_in_layers(const std::string& module) {
  const auto number = module.find_first_of("0123456789"), end = module.find('.', number);
  const bool is_in_layer = number != module.npos && end != module.npos;
  return is_in_layer ? module.substr(end + 1) : module;
}

[[noreturn]] void refuse(const description& about, const std::string& parameter, const std::string& why) {
  throw failure(1,
                "RC6524: plan {}: {} cannot be written as a PEFT adapter, because {}; give --merge, which "
                "adds the adapters to the weights, or --format safetensors",
                about.name, parameter, why);
}

/// The tensor of a parameter that is not an expert weight.
named_tensor find_dense_tensor(const hugging_face_model& model, const description& about,
                               const std::vector<global_parameter>& all, const global_parameter& p) {
  named_tensor named = find_tensor(model, about, all, p);
  if (named.rule.of_experts()) refuse(about, p.name, "a module there has the weights of one expert");
  return named;
}

adapted_module module_with_adapters(const named_tensor& named, const std::vector<global_parameter>& all,
                                    const free_sizes& sizes) {
  adapted_module m{
      module_of(named.theirs.front()), named.rule.transposed, named.parts.front()->columns, 0, {}};
  const bool is_table = named.rule.rows == rows_of::vocabulary;
  for (const global_parameter* p : named.parts) {
    const std::size_t rows = is_table ? std::min(p->rows, sizes.vocabulary) : p->rows;
    const adapted_part part{rows, find_parameter(all, p->name + lora_a),
                            find_parameter(all, p->name + lora_b)};
    if (part.a != nullptr) m.rank += part.a->rows;
    m.parts.push_back(part);
  }
  return m;
}

std::vector<adapted_module> adapted_modules(const description& about, const hugging_face_model& model,
                                            const std::vector<global_parameter>& all,
                                            const free_sizes& sizes) {
  std::vector<adapted_module> modules;
  std::set<std::string> found;
  for (const global_parameter& p : all) {
    if (find_parameter(all, p.name + lora_a) == nullptr) continue;
    const named_tensor named = find_dense_tensor(model, about, all, p);
    if (found.insert(named.theirs.front()).second) modules.push_back(module_with_adapters(named, all, sizes));
  }
  return modules;
}

/// True if the files use a parameter's tensor also for another parameter, which the plan lacks.
bool is_tied(const hugging_face_model& model, const std::vector<global_parameter>& all,
             const global_parameter& p) {
  return std::any_of(model.tensors.begin(), model.tensors.end(), [&](const tensor_rule& rule) {
    return rule.tied_to == p.name && find_parameter(all, rule.ours) == nullptr;
  });
}

/// The parameters of the modules that are trained whole.
std::vector<global_parameter> parameters_of_whole_modules(const description& about,
                                                          const hugging_face_model& model,
                                                          const std::vector<global_parameter>& all,
                                                          const std::vector<adapted_module>& adapted) {
  const auto module_with = [&](const global_parameter& p) {
    return module_of(find_dense_tensor(model, about, all, p).theirs.front());
  };
  std::set<std::string> modules;
  for (const global_parameter& p : all) {
    if (!p.trained || is_beside(p, all)) continue;
    const std::string module = module_with(p);
    if (is_tied(model, all, p)) refuse(about, p.name, "it is the head's weight, too");
    for (const adapted_module& m : adapted)
      if (m.name == module) refuse(about, p.name, "its module " + module + " has an adapter");
    modules.insert(module);
  }
  std::vector<global_parameter> of_modules;
  for (const global_parameter& p : all) {
    if (is_beside(p, all)) continue;
    const named_tensor named = find_tensor(model, about, all, p);
    if (modules.contains(module_of(named.theirs.front()))) of_modules.push_back(p);
  }
  return of_modules;
}

std::vector<double> values_of(const tensor_source& from, const global_parameter& p) {
  std::vector<double> values(p.count());
  from.read(p.name, {0, p.rows, 0, p.columns}, values.data());
  return values;
}

/// Appends A, then B. Shapes: A (rank, columns), B (rows of all parts, rank).
void append(safetensors_writer& out, const adapted_module& m, const tensor_source& from) {
  for (const adapted_part& part : m.parts) {
    if (part.a == nullptr) continue;
    const std::vector<double> a = values_of(from, *part.a);
    out.append(a.data(), a.size());
  }
  std::size_t first = 0;
  for (const adapted_part& part : m.parts) {
    std::vector<double> rows(part.rows * m.rank);
    if (part.b != nullptr) {
      const std::vector<double> b = values_of(from, *part.b);
      const std::size_t rank = part.b->columns;
      for (std::size_t i = 0; i < part.rows; ++i)
        std::copy_n(b.begin() + static_cast<std::ptrdiff_t>(i * rank), rank,
                    rows.begin() + static_cast<std::ptrdiff_t>(i * m.rank + first));
      first += rank;
    }
    out.append(rows.data(), rows.size());
  }
}

/// A number in JSON: an integer if it is whole, since PEFT's alpha is an integer.
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
    is_transposed = is_transposed || m.transposed;
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
                        const tensor_source& weights,
                        const std::optional<std::filesystem::path>& origin_folder, const std::string& base,
                        const std::filesystem::path& folder) {
  const hugging_face_model model = hugging_face_model_of(about);
  const source_in_files from(weights, about, model, all);
  std::optional<hugging_face_origin> origin;
  if (origin_folder) origin.emplace(about, model, *origin_folder);
  const free_sizes sizes = sizes_of(about, origin ? &*origin : nullptr);
  const std::vector<adapted_module> adapted = adapted_modules(about, model, all, sizes);
  const std::vector<global_parameter> of_modules = parameters_of_whole_modules(about, model, all, adapted);
  std::vector<joined> whole = join_parameters(about, model, of_modules, sizes);
  std::vector<safetensors_writer::tensor> tensors;
  const dtype type = type_of_files(about);
  for (const adapted_module& m : adapted) {
    tensors.push_back({key_begin + m.name + ".lora_A.weight", {m.rank, m.columns}, type});
    tensors.push_back({key_begin + m.name + ".lora_B.weight", {m.rows(), m.rank}, type});
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
