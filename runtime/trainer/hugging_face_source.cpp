// SPDX-License-Identifier: Apache-2.0
#include "hugging_face_source.hpp"

#include "tensor_names.hpp"
#include "weights_names.hpp"

#include <algorithm>

namespace rankc::runtime {
namespace {

namespace fs = std::filesystem;

std::size_t rows_there(const named_tensor& named, const free_sizes& sizes) {
  if (named.rule.rows == rows_of::positions) return sizes.positions;
  if (named.rule.rows == rows_of::vocabulary) return sizes.vocabulary;
  return named.first_row(named.parts.size());
}

/// The shape of a parameter's tensor in the files.
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
    : hugging_face_source(about, hugging_face_model_of(about),
                          check_config(about, hugging_face_model_of(about), folder / config_file), parameters,
                          folder) {}

hugging_face_source::hugging_face_source(const description& about, const hugging_face_model& model,
                                         const free_sizes& sizes,
                                         const std::vector<global_parameter>& parameters,
                                         const fs::path& folder)
    : files_(model, folder),
      vocabulary_(sizes.vocabulary),
      notes_(notes_on_config(about, model, folder / config_file)) {
  shape_map found = files_.tensors().shapes(), expected;
  for (const global_parameter& p : parameters) {
    named_tensor named = find_tensor(model, about, parameters, p);
    for (std::string& name : named.theirs) name = files_.name_of(name);
    const std::size_t rows = rows_there(named, sizes);
    for (const std::string& name : named.theirs) expected[name] = shape_there(p, named.rule, rows);
    shapes_[p.name] = shape_here(p, named.rule, sizes);
    rows_of_[p.name] = {
        named.theirs,     named.rule.transposed, named.first_row(named.part), named.rows_of_part(named.part),
        named.rule.heads, named.rule.added};
  }
  for (const tensor_rule& rule : model.tensors) {
    const std::string copy = files_.name_of(rule.theirs);
    if (!shapes_.contains(rule.tied_to) || shapes_.contains(rule.ours) || !found.contains(copy)) continue;
    refuse_other_copy(about, copy, rule.tied_to);
    found.erase(copy);
  }
  std::erase_if(found, [&](const auto& t) {
    return std::any_of(model.buffers.begin(), model.buffers.end(), [&](const std::string& end) {
      return t.first.ends_with(end) && !expected.contains(t.first);
    });
  });
  check_shapes(folder.string(), found, expected);
}

/// A plan with a tied tensor has one of the two tensors that a folder may have. They must be equal.
void hugging_face_source::refuse_other_copy(const description& about, const std::string& copy,
                                            const std::string& tied_to) const {
  const std::string& table = rows_of_.at(tied_to).theirs.front();
  const piece_source& in = files_.tensors();
  const auto found = in.shapes().find(table);
  if (found == in.shapes().end()) return;  // a missing table is reported later
  const std::vector<std::size_t>& shape = found->second;
  bool is_equal = in.shapes().at(copy) == shape && shape.size() == 2;
  std::vector<double> a, b;
  for (std::size_t row = 0; is_equal && row < shape[0]; ++row) {
    const area line{row, 1, 0, shape[1]};
    a.resize(line.count());
    b.resize(line.count());
    in.read(copy, line, a.data());
    in.read(table, line, b.data());
    is_equal = a == b;
  }
  if (!is_equal)
    throw failure(
        1,
        "RC6551: {}: {} differs from {}, but plan {} ties the two; give a plan with tied = false, or remove "
        "the tensor that is wrong",
        name(), copy, table, about.name);
}

template <class F>
void hugging_face_source::each_of_theirs(const tensor_rows& p, const area& ours, F visit) {
  for (std::size_t row = ours.row, end = ours.row + ours.rows; row < end;) {
    const std::size_t tensor = row / p.rows, rows = std::min(end, (tensor + 1) * p.rows) - row;
    const auto row_there = [&](std::size_t here) { return p.heads.row_there(here - tensor * p.rows); };
    each_run(row, rows, row_there, [&](std::size_t first, std::size_t begin, std::size_t count) {
      const area there{begin + p.first_row, count, ours.column, ours.columns};
      visit(p.theirs[tensor], p.transposed ? area{there.column, there.columns, there.row, there.rows} : there,
            first - ours.row);
    });
    row += rows;
  }
}

void hugging_face_source::check(const std::string& tensor, const area& wanted) {
  each_of_theirs(rows_of_.at(tensor), wanted, [&](const std::string& theirs, const area& there, std::size_t) {
    files_.tensors().check(theirs, there);
  });
}

void hugging_face_source::read(const std::string& tensor, const area& wanted, double* to) const {
  const tensor_rows& p = rows_of_.at(tensor);
  each_of_theirs(p, wanted, [&](const std::string& theirs, const area& there, std::size_t row) {
    double* const begin = to + row * wanted.columns;
    if (!p.transposed) return files_.tensors().read(theirs, there, begin);
    std::vector<double> values(there.count());
    files_.tensors().read(theirs, there, values.data());
    for (std::size_t i = 0; i < there.rows; ++i)
      for (std::size_t j = 0; j < there.columns; ++j)
        begin[j * wanted.columns + i] = values[i * there.columns + j];
  });
  for (std::size_t i = 0; p.added != 0 && i < wanted.count(); ++i) to[i] += p.added;
}

}  // namespace rankc::runtime
