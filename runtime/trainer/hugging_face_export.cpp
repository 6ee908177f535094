// SPDX-License-Identifier: Apache-2.0
#include "hugging_face_export.hpp"

#include "hugging_face_config.hpp"
#include "weights_names.hpp"
#include <rankc/launch/refusal.hpp>
#include <rankc/runtime/durable.hpp>
#include <rankc/trainer/safetensors.hpp>

#include <nlohmann/json.hpp>
#include <algorithm>

namespace rankc::runtime {
namespace {

constexpr std::size_t elements_at_once = std::size_t{1} << 20;

/// A tensor of theirs, and those of ours that it holds, in the order of their parts.
struct joined {
  safetensors_writer::tensor as;
  tensor_rule rule;
  std::size_t first_row, rows;  // of each part
  std::vector<const global_parameter*> parts;
};

/// The type of the tensors in the files.
dtype type_of_files(const description& about) {
  if (about.type == dtype::f64) return dtype::f64;
  return about.bf16_weights ? dtype::bf16 : dtype::f32;
}

/// A type as PyTorch names it.
const char* torch_name_of(dtype type) {
  if (type == dtype::f64) return "float64";
  return type == dtype::f32 ? "float32" : "bfloat16";
}

std::vector<joined> join(const description& about, const described_model& model,
                         const std::vector<global_parameter>& parameters) {
  const model_family& family = *model.family;
  const dtype type = type_of_files(about);
  std::vector<joined> all;
  for (const global_parameter& p : parameters) {
    const named_rule named = rule_of(family, p.name);
    if (named.theirs.empty())
      throw refusal(1, "the plan {}: its parameter {} is none of a {}", about.name, p.name, family.name);
    const std::vector<std::string> theirs = named.names(model.experts);
    const std::size_t rows = p.rows / theirs.size();
    for (std::size_t n = 0; n < theirs.size(); ++n) {
      auto at = std::find_if(all.begin(), all.end(), [&](const joined& j) { return j.as.name == theirs[n]; });
      if (at == all.end()) {
        const std::size_t out = rows * named.rule.parts;
        std::vector<std::size_t> shape{out};
        if (p.matrix)
          shape = named.rule.transposed ? std::vector{p.columns, out} : std::vector{out, p.columns};
        at = all.insert(all.end(), {{theirs[n], shape, type}, named.rule, n * rows, rows, {}});
        at->parts.resize(named.rule.parts);
      }
      at->parts[named.rule.part] = &p;
    }
  }
  return all;
}

void append(safetensors_writer& out, const joined& j, const tensor_source& from) {
  const std::size_t columns = j.parts.front()->columns, wide = j.rows * j.parts.size();
  std::vector<double> values, block;
  if (!j.rule.transposed) {
    const std::size_t most = std::max<std::size_t>(1, elements_at_once / columns);
    for (const global_parameter* p : j.parts)
      for (std::size_t row = 0; row < j.rows; row += most) {
        const area some{j.first_row + row, std::min(most, j.rows - row), 0, columns};
        values.resize(some.count());
        from.read(p->name, some, values.data());
        out.append(values.data(), values.size());
      }
    return;
  }
  const std::size_t most = std::max<std::size_t>(1, elements_at_once / wide);
  for (std::size_t column = 0; column < columns; column += most) {
    const std::size_t count = std::min(most, columns - column);
    block.resize(count * wide);
    values.resize(j.rows * count);
    for (std::size_t part = 0; part < j.parts.size(); ++part) {
      from.read(j.parts[part]->name, {j.first_row, j.rows, column, count}, values.data());
      for (std::size_t i = 0; i < j.rows; ++i)
        for (std::size_t k = 0; k < count; ++k) block[k * wide + part * j.rows + i] = values[i * count + k];
    }
    out.append(block.data(), block.size());
  }
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
                        const tensor_source& from, const std::filesystem::path& folder,
                        std::size_t file_bytes) {
  const described_model model = model_of(about);
  const std::vector<joined> all = join(about, model, parameters);
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
    for (const joined* j : files[i]) append(out, *j, from);
    out.close();
  }
  index["metadata"]["total_size"] = total;
  if (files.size() > 1) write_durably(folder / weights_index_file, index.dump(2) + "\n");
  write_durably(folder / config_file, config_text(about, model, torch_name_of(all.front().as.type)));
}

}  // namespace rankc::runtime
