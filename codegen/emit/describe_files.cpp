// SPDX-License-Identifier: Apache-2.0
#include "describe_files.hpp"

#include <nlohmann/json.hpp>

namespace rankc::codegen {
namespace {

using nlohmann::json;

json json_of(const hugging_face_value& value) {
  return std::visit([](const auto& v) { return json(v); }, value);
}

const char* rows_text(rows_in_files rows) {
  return rows == rows_in_files::positions ? "positions" : "vocabulary";
}

json describe(const hugging_face_tensor& t) {
  json j{{"ours", t.ours}, {"theirs", t.theirs}};
  if (t.transposed) j["transposed"] = true;
  if (t.rows != rows_in_files::plan) j["rows"] = rows_text(t.rows);
  if (!t.tied_to.empty()) j["tied_to"] = t.tied_to;
  if (t.added != 0) j["added"] = t.added;
  if (t.heads != head_order{})
    j["heads"] = {
        {"elements", t.heads.elements}, {"turned", t.heads.turned}, {"neighbours", t.heads.neighbours}};
  return j;
}

json describe(const hugging_face_product& p) {
  json j{{"of", p.of}, {"factor", p.factor}};
  if (!p.over.empty()) j["over"] = p.over;
  return j;
}

json describe(const hugging_face_field& f) {
  json j{{"key", f.key}, {"value", json_of(f.value)}};
  if (const json missing = json_of(f.missing); !missing.is_null()) j["missing"] = missing;
  if (!f.follows.of.empty()) j["follows"] = describe(f.follows);
  if (!f.also.empty()) j["also"] = f.also;
  if (f.rotary) j["rotary"] = true;
  if (!f.layers.empty()) j["layers"] = f.layers;
  if (f.nullable) j["nullable"] = true;
  return j;
}

template <class Row>
json describe_all(const std::vector<Row>& rows) {
  json all = json::array();
  for (const Row& row : rows) all.push_back(describe(row));
  return all;
}

}  // namespace

json describe_files(const hugging_face_format& f) {
  json j{{"model_type", f.model_type},
         {"architecture", f.architecture},
         {"prefix", f.prefix},
         {"positions", f.positions},
         {"vocabulary", f.vocabulary},
         {"tensors", describe_all(f.tensors)},
         {"fields", describe_all(f.fields)}};
  if (!f.exported.empty()) j["exported"] = describe_all(f.exported);
  if (!f.buffers.empty()) j["buffers"] = f.buffers;
  if (f.experts > 0) j["experts"] = f.experts;
  if (const hugging_face_balance& b = f.balance; !b.coefficient.empty())
    j["balance"] = {{"coefficient", b.coefficient}, {"enabled", b.enabled}, {"value", b.value}};
  return j;
}

}  // namespace rankc::codegen
