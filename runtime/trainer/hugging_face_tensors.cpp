// SPDX-License-Identifier: Apache-2.0
#include "hugging_face_tensors.hpp"

#include <algorithm>

namespace rankc::runtime {
namespace {

constexpr std::size_t elements_at_once = std::size_t{1} << 20;

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

}  // namespace

dtype type_of_files(const description& about) {
  if (about.type == dtype::f64) return dtype::f64;
  return about.bf16_weights ? dtype::bf16 : dtype::f32;
}

free_sizes sizes_of(const description& about, const hugging_face_origin* origin) {
  if (origin != nullptr) return origin->sizes();
  return {static_cast<std::size_t>(about.seq), static_cast<std::size_t>(about.vocab_used)};
}

std::vector<joined> join_parameters(const description& about, const described_model& model,
                                    const std::vector<global_parameter>& parameters,
                                    const free_sizes& sizes) {
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

}  // namespace rankc::runtime
