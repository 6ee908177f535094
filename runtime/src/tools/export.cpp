// SPDX-License-Identifier: Apache-2.0
#include <rankc/runtime/tools/export.hpp>

#include "refusal.hpp"
#include <rankc/runtime/tools/checkpoint.hpp>
#include <rankc/runtime/tools/parameters.hpp>
#include <rankc/runtime/tools/safetensors.hpp>

#include <algorithm>
#include <vector>

namespace rankc::runtime {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t block_elements = std::size_t{1} << 20;

std::vector<double> read_all(const tensor_source& in, const global_parameter& p) {
  std::vector<double> values(p.count());
  in.read(p.name, {0, p.rows, 0, p.columns}, values.data());
  return values;
}

/// Rows [first, first + rows) of a tensor.
struct row_block {
  const global_parameter& of;
  std::size_t first, rows;
  std::vector<double>& values;
};

/// Add scale b a.
/// Shapes: a (rank, columns), b (rows of the whole, rank).
void add_product(row_block block, const std::vector<double>& a, const std::vector<double>& b, double scale) {
  const std::size_t columns = block.of.columns, rank = a.size() / columns;
  for (std::size_t i = 0; i < block.rows; ++i)
    for (std::size_t k = 0; k < rank; ++k) {
      const double factor = scale * b[(block.first + i) * rank + k];
      for (std::size_t j = 0; j < columns; ++j) block.values[i * columns + j] += factor * a[k * columns + j];
    }
}

}  // namespace

fs::path export_weights(const description& about, const fs::path& checkpoint, const fs::path& out, bool merge) {
  const std::vector<global_parameter> all = global_parameters(about);
  if (merge && about.lora_scale == 0)
    throw refusal(1, "--merge: the plan {} has no lora, so that nothing is beside its weights; leave it out", about.name);
  const std::unique_ptr<tensor_source> in = open_weights(about, find_checkpoint(checkpoint));
  std::vector<const global_parameter*> written;
  for (const global_parameter& p : all)
    if (!merge || !is_beside(p, all)) written.push_back(&p);
  std::vector<safetensors_writer::tensor> tensors;
  const dtype type = about.type == dtype::f64 ? dtype::f64 : dtype::f32;
  for (const global_parameter* p : written) tensors.push_back({p->name, p->shape(), type});
  prepare_save(out);
  const fs::path file = out / "model.safetensors";
  safetensors_writer to(file, tensors, {{"format", "pt"}});
  for (const global_parameter* p : written) {
    const global_parameter *a = find_parameter(all, p->name + lora_a), *b = find_parameter(all, p->name + lora_b);
    const bool merges = merge && a != nullptr && b != nullptr;
    const std::vector<double> of_a = merges ? read_all(*in, *a) : std::vector<double>{}, of_b = merges ? read_all(*in, *b) : of_a;
    const std::size_t rows = std::max<std::size_t>(1, block_elements / std::max<std::size_t>(1, p->columns));
    for (std::size_t first = 0; first < p->rows; first += rows) {
      const std::size_t count = std::min(rows, p->rows - first);
      std::vector<double> values(count * p->columns);
      in->read(p->name, {first, count, 0, p->columns}, values.data());
      if (merges) add_product({*p, first, count, values}, of_a, of_b, about.lora_scale);
      to.append(values.data(), values.size());
    }
  }
  to.close();
  return file;
}

}  // namespace rankc::runtime
