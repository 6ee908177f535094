// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/checkpoint_index.hpp>

#include "json_checksum.hpp"
#include <rankc/trainer/safetensors.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

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

std::size_t rows_of(const std::vector<std::size_t>& shape) { return shape.at(0); }
std::size_t columns_of(const std::vector<std::size_t>& shape) { return shape.size() > 1 ? shape[1] : 1; }

bool is_whole(const saved_tensor& t) {
  std::vector<area> areas;
  for (const saved_piece& p : t.pieces) areas.push_back(p.where);
  return covers(areas, rows_of(t.shape), columns_of(t.shape));
}

ordered_json to_json(const saved_piece& p, std::size_t dims) {
  ordered_json offset = {p.where.row};
  if (dims > 1) offset.push_back(p.where.column);
  return {{"file", p.file}, {"offset", offset}, {"extent", shape_of(p.where, dims)}};
}

saved_piece piece_of(const ordered_json& from) {
  const std::vector<std::size_t> offset = from.at("offset"), extent = from.at("extent");
  const bool matrix = offset.size() > 1;
  return {from.at("file"), {offset.at(0), extent.at(0), matrix ? offset[1] : 0, matrix ? extent.at(1) : 1}};
}

}  // namespace

std::vector<part> saved_parts(const description& about) {
  std::vector<part> parts{{region::weights, ""}};
  if (about.trains && about.moments > 0) parts.push_back({region::first_moment, "m."});
  if (about.trains && about.moments > 1) parts.push_back({region::second_moment, "v."});
  return parts;
}

bool has(const global_parameter& p, region r) { return r == region::weights || p.trained; }

std::string file_of_rank(int rank) { return fmt::format("rank_{:05}.safetensors", rank); }

std::vector<std::size_t> shape_of(const area& a, std::size_t dims) {
  return dims > 1 ? std::vector{a.rows, a.columns} : std::vector{a.rows};
}

std::vector<saved_tensor> saved_tensors(const description& about,
                                        const std::vector<global_parameter>& parameters) {
  std::vector<saved_tensor> all;
  for (const part& part : saved_parts(about))
    for (const global_parameter& p : parameters) {
      if (!has(p, part.where)) continue;
      const shard& first = p.sources.front();
      saved_tensor t{part.prefix + p.name,
                     part.where,
                     type_at(about, first.rank, part.where, first.element),
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

std::string index_text(const std::vector<saved_tensor>& tensors) {
  ordered_json root;
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

std::vector<saved_tensor> read_index(const std::filesystem::path& file) {
  const ordered_json root = read_checked_json(file, 1);
  std::vector<saved_tensor> all;
  try {
    for (const auto& [name, from] : root.at("tensors").items()) {
      saved_tensor t{name,
                     region_named(file, name, from.at("region")),
                     type_named(file, name, from.at("dtype")),
                     from.at("shape"),
                     {}};
      for (const ordered_json& piece : from.at("pieces")) t.pieces.push_back(piece_of(piece));
      all.push_back(std::move(t));
    }
  } catch (const failure&) {
    throw;
  } catch (const std::exception& e) {
    refuse_other_version(file, 1, e);
  }
  for (const saved_tensor& t : all)
    if (!is_whole(t))
      throw failure(1, "RC6513: {}: the pieces of tensor {} overlap or leave a hole", file, t.name);
  return all;
}

}  // namespace rankc::runtime
