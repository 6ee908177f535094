// SPDX-License-Identifier: Apache-2.0
#include "hugging_face_source.hpp"

#include "tensor_names.hpp"
#include "weights_names.hpp"

#include <algorithm>

namespace rankc::runtime {
namespace {

namespace fs = std::filesystem;

constexpr const char* head = "lm_head.weight";

std::size_t rows_there(const global_parameter& p, const tensor_rule& rule, const free_sizes& sizes,
                       std::size_t tensors) {
  if (rule.rows == rows_of::positions) return sizes.positions;
  if (rule.rows == rows_of::vocabulary) return sizes.vocabulary;
  return p.rows * rule.parts / tensors;
}

/// The shape of a tensor there that a tensor of the plan lies in.
std::vector<std::size_t> shape_there(const global_parameter& p, const tensor_rule& rule, std::size_t rows) {
  if (!p.matrix) return {rows};
  return rule.transposed ? std::vector{p.columns, rows} : std::vector{rows, p.columns};
}

/// The shape that the tensor would have in the plan.
std::vector<std::size_t> shape_here(const global_parameter& p, const tensor_rule& rule,
                                    const free_sizes& sizes) {
  std::vector<std::size_t> shape = p.shape();
  if (rule.rows == rows_of::vocabulary) shape.front() = sizes.vocabulary;
  return shape;
}

}  // namespace

hugging_face_source::hugging_face_source(const description& about,
                                         const std::vector<global_parameter>& parameters,
                                         const fs::path& folder)
    : hugging_face_source(about, model_of(about), check_config(about, model_of(about), folder / config_file),
                          parameters, folder) {}

hugging_face_source::hugging_face_source(const description& about, const described_model& model,
                                         const free_sizes& sizes,
                                         const std::vector<global_parameter>& parameters,
                                         const fs::path& folder)
    : files_(*model.family, folder),
      vocabulary_(sizes.vocabulary),
      notes_(notes_on_config(about, model, folder / config_file)) {
  shape_map found = files_.tensors().shapes(), expected;
  for (const global_parameter& p : parameters) {
    named_rule named = rule_of(*model.family, about.name, p.name);
    named.theirs = files_.name_of(named.theirs);
    const std::vector<std::string> theirs = named.names(model.experts);
    const std::size_t rows = rows_there(p, named.rule, sizes, theirs.size());
    for (const std::string& name : theirs) expected[name] = shape_there(p, named.rule, rows);
    shapes_[p.name] = shape_here(p, named.rule, sizes);
    places_[p.name] = {theirs, named.rule.transposed, named.rule.part * p.rows, p.rows / theirs.size()};
  }
  if (found.contains(head) && !shapes_.contains("lm_head")) {
    refuse_other_head(about);
    found.erase(head);
  }
  std::erase_if(found, [&](const auto& t) {
    return std::any_of(model.family->skipped.begin(), model.family->skipped.end(), [&](std::string_view end) {
      return t.first.ends_with(end) && !expected.contains(t.first);
    });
  });
  check_shapes(folder.string(), found, expected);
}

/// A tied head is the table of tokens. A folder may have both only where they are equal.
void hugging_face_source::refuse_other_head(const description& about) const {
  const std::string& table = places_.at("wte").theirs.front();
  const piece_source& in = files_.tensors();
  const auto found = in.shapes().find(table);
  if (found == in.shapes().end()) return;  // a table that is missing is listed later
  const std::vector<std::size_t>& shape = found->second;
  bool is_equal = in.shapes().at(head) == shape && shape.size() == 2;
  std::vector<double> a, b;
  for (std::size_t row = 0; is_equal && row < shape[0]; ++row) {
    const area line{row, 1, 0, shape[1]};
    a.resize(line.count());
    b.resize(line.count());
    in.read(head, line, a.data());
    in.read(table, line, b.data());
    is_equal = a == b;
  }
  if (!is_equal)
    throw failure(
        1,
        "RC6551: {}: {} differs from {}, but plan {} ties the two; give a plan with tied = false, or remove "
        "the tensor that is wrong",
        name(), head, table, about.name);
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
    files_.tensors().check(theirs, there);
  });
}

void hugging_face_source::read(const std::string& tensor, const area& wanted, double* to) const {
  const place& p = places_.at(tensor);
  each_of_theirs(p, wanted, [&](const std::string& theirs, const area& there, std::size_t row) {
    double* const begin = to + row * wanted.columns;
    if (!p.transposed) return files_.tensors().read(theirs, there, begin);
    std::vector<double> values(there.count());
    files_.tensors().read(theirs, there, values.data());
    for (std::size_t i = 0; i < there.rows; ++i)
      for (std::size_t j = 0; j < there.columns; ++j)
        begin[j * wanted.columns + i] = values[i * there.columns + j];
  });
}

}  // namespace rankc::runtime
