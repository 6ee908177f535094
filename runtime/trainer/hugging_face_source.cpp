// SPDX-License-Identifier: Apache-2.0
#include "hugging_face_source.hpp"

#include "json_checksum.hpp"
#include <rankc/launch/refusal.hpp>
#include "tensor_names.hpp"
#include "weights_names.hpp"

#include <nlohmann/json.hpp>
#include <algorithm>
#include <set>

namespace rankc::runtime {
namespace {

namespace fs = std::filesystem;

std::unique_ptr<piece_source> open_files(const fs::path& folder) {
  const fs::path one = folder / weights_file, index = folder / weights_index_file;
  if (fs::exists(one) || !fs::exists(index))
    return std::make_unique<piece_source>(folder.string(), std::vector{one});
  const auto root = nlohmann::json::parse(contents_of_file(index, 1), nullptr, false);
  std::set<fs::path> files;
  if (root.is_object() && root.contains("weight_map") && root["weight_map"].is_object())
    for (const auto& [tensor, file] : root["weight_map"].items())
      if (file.is_string()) files.insert(folder / file.get<std::string>());
  if (files.empty()) throw refusal(1, "{}: names no files in weight_map", index.string());
  return std::make_unique<piece_source>(folder.string(), std::vector(files.begin(), files.end()));
}

/// Theirs, of a tensor of ours.
std::vector<std::size_t> shape_there(const global_parameter& p, const tensor_rule& rule,
                                     std::size_t positions, std::size_t tensors) {
  const std::size_t rows = rule.of_positions ? positions : p.rows * rule.parts / tensors;
  if (!p.matrix) return {rows};
  return rule.transposed ? std::vector{p.columns, rows} : std::vector{rows, p.columns};
}

}  // namespace

bool is_hugging_face(const fs::path& folder) { return fs::exists(folder / config_file); }

hugging_face_source::hugging_face_source(const description& about,
                                         const std::vector<global_parameter>& parameters,
                                         const fs::path& folder) {
  const described_model model = model_of(about);
  const std::size_t positions = check_config(about, model, folder / config_file);
  files_ = open_files(folder);
  shape_map found = files_->shapes(), expected;
  const std::string prefix(model.family->prefix);
  const bool bare =
      std::none_of(found.begin(), found.end(), [&](const auto& t) { return t.first.starts_with(prefix); });
  for (const global_parameter& p : parameters) {
    named_rule named = rule_of(*model.family, p.name);
    if (named.theirs.empty())
      throw refusal(1, "the plan {}: its parameter {} is none of a {}", about.name, p.name,
                    model.family->name);
    if (bare && named.theirs.starts_with(prefix)) named.theirs.erase(0, prefix.size());
    const std::vector<std::string> theirs = named.names(model.experts);
    for (const std::string& name : theirs)
      expected[name] = shape_there(p, named.rule, positions, theirs.size());
    shapes_[p.name] = p.shape();
    places_[p.name] = {theirs, named.rule.transposed, named.rule.part * p.rows, p.rows / theirs.size()};
  }
  std::erase_if(found, [&](const auto& t) {
    const bool tied = t.first == "lm_head.weight" && !shapes_.contains("lm_head");
    return tied ||
           std::any_of(model.family->skipped.begin(), model.family->skipped.end(), [&](std::string_view end) {
             return t.first.ends_with(end) && !expected.contains(t.first);
           });
  });
  check_shapes(folder.string(), found, expected);
}

template <class F>
void hugging_face_source::each_of_theirs(const place& p, const area& ours, F visit) {
  for (std::size_t row = ours.row, end = ours.row + ours.rows; row < end;) {
    const std::size_t tensor = row / p.rows, rows = std::min(end, (tensor + 1) * p.rows) - row;
    const area there{row - tensor * p.rows + p.first_row, rows, ours.column, ours.columns};
    visit(p.theirs[tensor], p.transposed ? area{there.column, there.columns, there.row, there.rows} : there,
          row - ours.row);
    row += rows;
  }
}

void hugging_face_source::check(const std::string& tensor, const area& wanted) {
  each_of_theirs(places_.at(tensor), wanted, [&](const std::string& theirs, const area& there, std::size_t) {
    files_->check(theirs, there);
  });
}

void hugging_face_source::read(const std::string& tensor, const area& wanted, double* to) const {
  const place& p = places_.at(tensor);
  each_of_theirs(p, wanted, [&](const std::string& theirs, const area& there, std::size_t row) {
    double* const begin = to + row * wanted.columns;
    if (!p.transposed) return files_->read(theirs, there, begin);
    std::vector<double> values(there.count());
    files_->read(theirs, there, values.data());
    for (std::size_t i = 0; i < there.rows; ++i)
      for (std::size_t j = 0; j < there.columns; ++j)
        begin[j * wanted.columns + i] = values[i * there.columns + j];
  });
}

}  // namespace rankc::runtime
