// SPDX-License-Identifier: Apache-2.0
#include "hugging_face_tensors.hpp"

#include <algorithm>

namespace rankc::runtime {
namespace {

constexpr std::size_t elements_at_once = std::size_t{1} << 20;

/// Tensor number `n` of those that hold a parameter.
joined tensor_of_files(const named_tensor& named, std::size_t n, dtype type, const free_sizes& sizes) {
  joined j{{named.theirs[n], {}, type}, named.rule.transposed, {}, 0};
  for (std::size_t i = 0; i < named.parts.size(); ++i) {
    const std::size_t rows = named.rows_of_part(i);
    j.parts.push_back({named.parts[i], n * rows, rows});
  }
  rows_of_parameter& first = j.parts.front();
  if (named.rule.rows == rows_of::vocabulary) first.count = std::min(first.count, sizes.vocabulary);
  if (named.rule.rows == rows_of::positions) j.copied_rows = sizes.positions - first.count;
  const std::size_t out = j.rows() + j.copied_rows, columns = first.of->columns;
  j.as.shape = {out};
  if (first.of->matrix) j.as.shape = j.transposed ? std::vector{columns, out} : std::vector{out, columns};
  return j;
}

/// Calls `read` for blocks of whole rows, and appends the values.
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

/// Appends a tensor whose columns are the rows of the parts, in blocks of its rows.
void append_transposed(safetensors_writer& out, const joined& j, const tensor_source& from) {
  const std::size_t columns = j.parts.front().of->columns, wide = j.rows();
  const std::size_t most = std::max<std::size_t>(1, elements_at_once / wide);
  std::vector<double> values, block;
  for (std::size_t column = 0; column < columns; column += most) {
    const std::size_t count = std::min(most, columns - column);
    block.resize(count * wide);
    std::size_t first = 0;
    for (const rows_of_parameter& part : j.parts) {
      values.resize(part.count * count);
      from.read(part.of->name, {part.first, part.count, column, count}, values.data());
      for (std::size_t i = 0; i < part.count; ++i)
        for (std::size_t k = 0; k < count; ++k) block[k * wide + first + i] = values[i * count + k];
      first += part.count;
    }
    out.append(block.data(), block.size());
  }
}

}  // namespace

std::size_t joined::rows() const {
  std::size_t rows = 0;
  for (const rows_of_parameter& part : parts) rows += part.count;
  return rows;
}

dtype type_of_files(const description& about) {
  if (about.type == dtype::f64) return dtype::f64;
  return about.bf16_weights ? dtype::bf16 : dtype::f32;
}

free_sizes sizes_of(const description& about, const hugging_face_origin* origin) {
  if (origin != nullptr) return origin->sizes();
  return {static_cast<std::size_t>(about.seq), static_cast<std::size_t>(about.vocab_used)};
}

std::vector<joined> join_parameters(const description& about, const hugging_face_model& model,
                                    const std::vector<global_parameter>& parameters,
                                    const free_sizes& sizes) {
  std::vector<joined> all;
  for (const global_parameter& p : parameters) {
    const named_tensor named = find_tensor(model, about, parameters, p);
    for (std::size_t n = 0; n < named.theirs.size() && named.part == 0; ++n)
      all.push_back(tensor_of_files(named, n, type_of_files(about), sizes));
  }
  return all;
}

void append(safetensors_writer& out, const joined& j, const tensor_source& from,
            hugging_face_origin* origin) {
  if (j.transposed) return append_transposed(out, j, from);
  const std::size_t columns = j.parts.front().of->columns;
  for (const rows_of_parameter& part : j.parts)
    append_rows(out, {part.first, part.count, 0, columns},
                [&](const area& some, double* to) { from.read(part.of->name, some, to); });
  if (j.copied_rows > 0)
    append_rows(out, {j.rows(), j.copied_rows, 0, columns},
                [&](const area& some, double* to) { origin->read(j.as.name, some, to); });
}

}  // namespace rankc::runtime
