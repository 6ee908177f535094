// SPDX-License-Identifier: Apache-2.0
#include "hugging_face_export.hpp"

#include "hugging_face_origin.hpp"
#include "weights_names.hpp"
#include <rankc/runtime/durable.hpp>
#include <rankc/trainer/input_file.hpp>
#include <rankc/trainer/safetensors.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <algorithm>

namespace rankc::runtime {
namespace {

constexpr std::size_t elements_at_once = std::size_t{1} << 20;
constexpr std::size_t largest_copied = std::size_t{1} << 30;  // bytes of a tokenizer's file

/// A tensor of the files, and the tensors of the plan that it joins, in the order of their parts.
struct joined {
  safetensors_writer::tensor as;
  tensor_rule rule;
  std::size_t first_row, rows;  // of each part
  std::size_t copied_rows;      // that follow, from the origin
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

/// The sizes of the files: those of the origin, or the plan's.
free_sizes sizes_of(const description& about, const hugging_face_origin* origin) {
  if (origin != nullptr) return origin->sizes();
  return {static_cast<std::size_t>(about.seq), static_cast<std::size_t>(about.vocab_used)};
}

/// A tensor of the files without its parts.
joined part_of_file(const global_parameter& p, const tensor_rule& rule, const std::string& name, dtype type,
                    std::size_t number, std::size_t tensors, const free_sizes& sizes) {
  joined j{{name, {}, type}, rule, 0, p.rows / tensors, 0, {}};
  j.first_row = number * j.rows;
  if (rule.rows == rows_of::vocabulary) j.rows = std::min(j.rows, sizes.vocabulary);
  if (rule.rows == rows_of::positions) j.copied_rows = sizes.positions - j.rows;
  const std::size_t out = j.rows * rule.parts + j.copied_rows;
  j.as.shape = {out};
  if (p.matrix) j.as.shape = rule.transposed ? std::vector{p.columns, out} : std::vector{out, p.columns};
  j.parts.resize(rule.parts);
  return j;
}

std::vector<joined> join(const description& about, const described_model& model,
                         const std::vector<global_parameter>& parameters, const free_sizes& sizes) {
  std::vector<joined> all;
  for (const global_parameter& p : parameters) {
    const named_rule named = rule_of(*model.family, about.name, p.name);
    const std::vector<std::string> theirs = named.names(model.experts);
    for (std::size_t n = 0; n < theirs.size(); ++n) {
      auto at = std::find_if(all.begin(), all.end(), [&](const joined& j) { return j.as.name == theirs[n]; });
      if (at == all.end())
        at = all.insert(
            all.end(), part_of_file(p, named.rule, theirs[n], type_of_files(about), n, theirs.size(), sizes));
      at->parts[named.rule.part] = &p;
    }
  }
  return all;
}

/// Call `read` for blocks of whole rows, and append what it reads.
template <class Read>
void append_rows(safetensors_writer& out, const area& rows, const Read& read) {
  const std::size_t most = std::max<std::size_t>(1, elements_at_once / rows.columns);
  std::vector<double> values;
  for (std::size_t done = 0; done < rows.rows; done += most) {
    const area some{rows.row + done, std::min(most, rows.rows - done), 0, rows.columns};
    values.resize(some.count());
    read(some, values.data());
    out.append(values.data(), values.size());
  }
}

void append(safetensors_writer& out, const joined& j, const tensor_source& from,
            hugging_face_origin* origin) {
  const std::size_t columns = j.parts.front()->columns, wide = j.rows * j.parts.size();
  if (!j.rule.transposed) {
    for (const global_parameter* p : j.parts)
      append_rows(out, {j.first_row, j.rows, 0, columns},
                  [&](const area& some, double* to) { from.read(p->name, some, to); });
    if (j.copied_rows > 0)
      append_rows(out, {j.rows, j.copied_rows, 0, columns},
                  [&](const area& some, double* to) { origin->read(j.as.name, some, to); });
    return;
  }
  std::vector<double> values, block;
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
                        const tensor_source& from, const std::optional<std::filesystem::path>& origin_folder,
                        const std::filesystem::path& folder, std::size_t file_bytes) {
  const described_model model = model_of(about);
  std::optional<hugging_face_origin> kept;
  if (origin_folder) kept.emplace(about, model, *origin_folder);
  hugging_face_origin* const origin = kept ? &*kept : nullptr;
  const std::vector<joined> all = join(about, model, parameters, sizes_of(about, origin));
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
