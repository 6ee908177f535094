// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/piece_source.hpp>

#include "json/json_checksum.hpp"
#include <rankc/trainer/model_files.hpp>

#include <algorithm>
#include <sstream>

namespace rankc::runtime {
namespace {

constexpr std::size_t largest_commit = std::size_t{1} << 24;

std::map<std::string, std::string> read_commit(const std::filesystem::path& file) {
  std::map<std::string, std::string> checksums;
  std::istringstream in(contents_of_file(file, 1, largest_commit));
  for (std::string checksum, name; in >> checksum >> name;) checksums[name] = checksum;
  return checksums;
}

/// Errors: failure (1) if COMMIT has another checksum for a file.
void check_file(const std::filesystem::path& file, const std::string& found,
                const std::map<std::string, std::string>& checksums) {
  const auto expected = checksums.find(file.filename().string());
  if (expected == checksums.end())
    throw failure(1, "RC6575: {} is not listed in {}; the checkpoint is damaged", file,
                  file.parent_path() / commit_file);
  if (expected->second != found)
    throw failure(1, "RC6576: {} has checksum \"{}\", but {} lists {}; it is damaged or of another save",
                  file, found, commit_file, expected->second);
}

/// The area of a whole tensor. Dims after the first are merged.
area whole(const std::vector<std::size_t>& shape) {
  area all{0, 1, 0, 1};
  for (std::size_t i = 0; i < shape.size(); ++i) (i == 0 ? all.rows : all.columns) *= shape[i];
  return all;
}

}  // namespace

piece_source::piece_source(const std::filesystem::path& folder, bool weights_alone)
    : folder_(folder), name_(folder.string()), checksums_(read_commit(folder / commit_file)) {
  for (const char* name : {run_file, index_file})
    check_file(folder / name, checksum::of(contents_of_file(folder / name, 1, pieces_limits.bytes)),
               checksums_);
  saved_index index = read_index(folder / index_file);
  vocabulary_ = index.vocabulary;
  for (saved_tensor& t : index.tensors) {
    if (weights_alone && t.where != region::weights) continue;
    shapes_[t.name] = t.shape;
    tensors_[t.name] = {t.shape.size(), std::move(t.pieces)};
  }
}

piece_source::piece_source(const std::string& name, const std::vector<std::filesystem::path>& files)
    : name_(name) {
  for (const std::filesystem::path& file : files) {
    const auto& in = *(files_[file.string()] = std::make_unique<safetensors_reader>(file));
    for (const auto& [tensor, found] : in.tensors()) {
      if (!shapes_.try_emplace(tensor, found.shape).second)
        throw failure(1, "RC6577: tensor {} is in both {} and {}", tensor,
                      tensors_[tensor].pieces.front().file, file);
      tensors_[tensor] = {found.shape.size(), {{file.string(), whole(found.shape)}}};
    }
  }
}

const safetensors_reader& piece_source::open(const std::string& file) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<safetensors_reader>& in = files_[file];
  if (in != nullptr) return *in;
  const std::filesystem::path path = file_within(folder_, file, folder_ / index_file, 1);
  auto opened = std::make_unique<safetensors_reader>(path);
  check_file(path, opened->checksum_of_header(), checksums_);
  in = std::move(opened);
  return *in;
}

void piece_source::check(const std::string& name, const area& wanted) {
  const tensor& t = tensors_.at(name);
  for (const saved_piece& p : t.pieces) {
    if (common(p.where, wanted).count() == 0) continue;
    const safetensors_reader& in = open(p.file);
    {
      const std::lock_guard lock(mutex_);
      if (!checked_.insert({p.file, name}).second) continue;
    }
    const auto found = in.tensors().find(name);
    const std::string expected = shape_text(shape_of(p.where, t.dims));
    if (found == in.tensors().end())
      throw failure(1, "RC6578: {} lacks tensor {}; {} expects {}", folder_ / p.file, name, index_file,
                    expected);
    if (found->second.count != p.where.count())
      throw failure(1, "RC6579: {}: tensor {} has shape {}, but {} expects {}", folder_ / p.file, name,
                    shape_text(found->second.shape), index_file, expected);
    in.check(name);
  }
}

void piece_source::read(const std::string& name, const area& wanted, double* to) const {
  for (const saved_piece& p : tensors_.at(name).pieces) {
    const area both = common(p.where, wanted);
    if (both.count() == 0) continue;
    const safetensors_reader& in = *files_.at(p.file);
    double* into = to + (both.row - wanted.row) * wanted.columns + (both.column - wanted.column);
    const std::size_t first = (both.row - p.where.row) * p.where.columns + (both.column - p.where.column);
    if (both.columns == p.where.columns && both.columns == wanted.columns) {
      in.read(name, first, both.count(), into);
      continue;
    }
    for (std::size_t i = 0; i < both.rows; ++i)
      in.read(name, first + i * p.where.columns, both.columns, into + i * wanted.columns);
  }
}

}  // namespace rankc::runtime
