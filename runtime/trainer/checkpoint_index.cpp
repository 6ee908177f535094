// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/checkpoint_index.hpp>

#include "json/json_checksum.hpp"
#include <rankc/trainer/safetensors.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <algorithm>
#include <cstdint>

namespace rankc::runtime {
namespace {

using nlohmann::ordered_json;

constexpr dtype types[]{dtype::f32, dtype::f64, dtype::bf16};

dtype type_named(const std::filesystem::path& file, const std::string& tensor, const std::string& name) {
  for (const dtype type : types)
    if (name == name_of(type)) return type;
  throw failure(1, "RC6510: {}: tensor {} has dtype {}; expected F32, F64 or BF16", file, tensor, name);
}

region region_named(const std::filesystem::path& file, const std::string& tensor, const std::string& name) {
  for (const region r : {region::weights, region::first_moment, region::second_moment})
    if (name == region_names[static_cast<int>(r)]) return r;
  throw failure(1, "RC6511: {}: tensor {} has the unknown region {}", file, tensor, name);
}

bool is_whole(const saved_tensor& t) {
  std::vector<area> areas;
  for (const saved_piece& p : t.pieces) areas.push_back(p.where);
  return covers(areas, t.shape[0], t.shape.size() > 1 ? t.shape[1] : 1);
}

ordered_json to_json(const saved_piece& p, std::size_t dims) {
  ordered_json offset = {p.where.row};
  if (dims > 1) offset.push_back(p.where.column);
  return {{"file", p.file}, {"offset", offset}, {"extent", shape_of(p.where, dims)}};
}

constexpr const char* vocabulary_key = "vocabulary";

using sizes = std::vector<std::size_t>;

/// The values of one tensor in index.json, with errors that name the file, the tensor and the key.
class tensor_reader {
 public:
  tensor_reader(const std::filesystem::path& file, const std::string& tensor)
      : file_(file), tensor_(tensor) {}

  saved_tensor read(const ordered_json& from) const {
    saved_tensor t{tensor_,
                   region_named(file_, tensor_, text(from, "region")),
                   type_named(file_, tensor_, text(from, "dtype")),
                   numbers(from, "shape"),
                   {}};
    if (t.shape.empty() || t.shape.size() > 2 || !fits(t.shape))
      refuse("shape", fmt::format("{}", shape_text(t.shape)),
             "one or two numbers whose product fits into 63 bits");
    const ordered_json& pieces = value_of(from, "pieces");
    if (!pieces.is_array()) refuse("pieces", shown(pieces), "a list");
    for (const ordered_json& piece : pieces) t.pieces.push_back(read_piece(piece, t.shape));
    return t;
  }

 private:
  saved_piece read_piece(const ordered_json& from, const sizes& shape) const {
    const sizes offset = numbers(from, "offset"), extent = numbers(from, "extent");
    if (offset.size() != shape.size())
      refuse("offset", shape_text(offset), "as many numbers as the shape has");
    if (extent.size() != shape.size())
      refuse("extent", shape_text(extent), "as many numbers as the shape has");
    for (std::size_t i = 0; i < shape.size(); ++i)
      if (offset[i] > shape[i] || extent[i] > shape[i] - offset[i])
        refuse("extent", shape_text(extent), "a part of the shape " + shape_text(shape));
    return {text(from, "file"), {offset[0], extent[0], columns(offset, 0), columns(extent, 1)}};
  }

  static std::size_t columns(const sizes& of, std::size_t vector) { return of.size() > 1 ? of[1] : vector; }
  static bool fits(const sizes& shape) {
    std::int64_t product = 1;
    return std::none_of(shape.begin(), shape.end(), [&](std::size_t extent) {
      return __builtin_mul_overflow(product, extent, &product);
    });
  }
  std::string text(const ordered_json& from, const char* key) const {
    return required<std::string>(from, key, place(), file_.string(), 1);
  }
  sizes numbers(const ordered_json& from, const char* key) const {
    return required<sizes>(from, key, place(), file_.string(), 1);
  }
  std::string place() const { return "tensors." + tensor_ + "."; }
  [[noreturn]] void refuse(const char* key, const std::string& found, const std::string& expected) const {
    refuse_value(file_.string(), 1, place() + key, found, expected);
  }

  const std::filesystem::path& file_;
  const std::string& tensor_;
};

}  // namespace

std::vector<saved_region> saved_regions(const description& about) {
  std::vector<saved_region> regions{{region::weights, ""}};
  if (about.trains && about.moments > 0) regions.push_back({region::first_moment, "m."});
  if (about.trains && about.moments > 1) regions.push_back({region::second_moment, "v."});
  return regions;
}

bool has(const global_parameter& p, region r) { return r == region::weights || p.trained; }

std::string file_of_rank(int rank) { return fmt::format("rank_{:05}.safetensors", rank); }

std::vector<std::size_t> shape_of(const area& a, std::size_t dims) {
  return dims > 1 ? std::vector{a.rows, a.columns} : std::vector{a.rows};
}

std::vector<saved_tensor> saved_tensors(const description& about,
                                        const std::vector<global_parameter>& parameters) {
  std::vector<saved_tensor> all;
  for (const saved_region& saved : saved_regions(about))
    for (const global_parameter& p : parameters) {
      if (!has(p, saved.where)) continue;
      const shard& first = p.sources.front();
      saved_tensor t{saved.prefix + p.name,
                     saved.where,
                     type_at(about, first.rank, saved.where, first.element),
                     p.shape(),
                     {}};
      for (const shard& s : p.sources)
        if (area_of(s).count() > 0) t.pieces.push_back({file_of_rank(s.rank), area_of(s)});
      if (!is_whole(t))
        throw failure(70, "RC6512: the ranks' shards of parameter {} do not hold each element exactly once",
                      p.name);
      all.push_back(std::move(t));
    }
  return all;
}

std::string index_text(const std::vector<saved_tensor>& tensors, std::size_t vocabulary) {
  ordered_json root{{vocabulary_key, vocabulary}};
  for (const saved_tensor& t : tensors) {
    ordered_json& to = root["tensors"][t.name] = {{"region", region_names[static_cast<int>(t.where)]},
                                                  {"dtype", name_of(t.type)},
                                                  {"shape", t.shape},
                                                  {"pieces", ordered_json::array()}};
    for (const saved_piece& p : t.pieces) to["pieces"].push_back(to_json(p, t.shape.size()));
  }
  root["checksum"] = checksum_of(root);
  return root.dump(1) + "\n";
}

saved_index read_index(const std::filesystem::path& file) {
  const ordered_json root = read_checked_json(file, 1, pieces_limits);
  const ordered_json& tensors = value_of(root, "tensors");
  if (!tensors.is_object()) refuse_value(file.string(), 1, "tensors", shown(tensors), "an object");
  saved_index all;
  if (root.contains(vocabulary_key))
    all.vocabulary = required<std::size_t>(root, vocabulary_key, "", file.string(), 1);
  for (const auto& [name, from] : tensors.items())
    all.tensors.push_back(tensor_reader(file, name).read(from));
  for (const saved_tensor& t : all.tensors)
    if (!is_whole(t))
      throw failure(1, "RC6513: {}: the pieces of tensor {} overlap or leave a hole", file, t.name);
  return all;
}

}  // namespace rankc::runtime
