// SPDX-License-Identifier: Apache-2.0
// The model of a certificate.
#include "verify_json.hpp"

namespace rankc::codegen::verifying {

namespace {

specification::tensor to_tensor(const json& j) {
  constexpr const char* what = "a unit of the model";
  if (!j.is_array() || j.size() < 2 || j.size() > 3)
    refuse(
        "RC7145: certificate: a value of the model must be [shape, unit], and the unit of its rows where "
        "these have one");
  return {to_counts(j[0], "a shape of the model"), to_count(j[1], what),
          j.size() > 2 ? to_count(j[2], what) : 1};
}

specification::rounding to_rounding(const json& j) {
  const std::string word = to_word(j, {"fp8", "fp8_rows"}, "the rounding of an op of the model");
  return word == "fp8" ? specification::rounding::fp8 : specification::rounding::fp8_rows;
}

specification::op to_model_op(const json& j) {
  if (!j.is_array() || j.size() < 6 || j.size() > 8)
    refuse(
        "RC7146: certificate: an op of the model must be [row, in, out, rows, seq, number], and a scaling "
        "where rotary positions are scaled, and \"fp8\" or \"fp8_rows\" where its operands are rounded");
  specification::op o{to_text(j[0], "a row of the model"), to_ints(j[1], "in"), to_ints(j[2], "out")};
  o.rows = to_count(j[3], "rows");
  o.seq = to_count(j[4], "seq");
  o.number = to_number(j[5], "number");
  std::size_t next = 6;
  if (next < j.size() && j[next].is_array()) o.scaling = to_scaling(j[next++], "an op of the model");
  if (next < j.size()) o.operands = to_rounding(j[next]);
  return o;
}

specification::layer to_layer(const json& j) {
  const bool has_statistics = j.is_object() && j.contains("statistics");  // of routers
  std::vector<const char*> fields{"name",    "values", "ops",         "input",
                                  "targets", "result", "side_losses", "parameters"};
  if (has_statistics) fields.push_back("statistics");
  const bool has_starts = j.is_object() && j.contains("starts");  // of documents
  if (has_starts) fields.push_back("starts");
  expect_fields(j, fields, "a layer of the model");
  specification::layer l{.name = to_text(j["name"], "name"),
                         .values = to_list(j["values"], "values", to_tensor),
                         .ops = to_list(j["ops"], "ops", to_model_op),
                         .input = to_int(j["input"], "input"),
                         .targets = to_int(j["targets"], "targets"),
                         .result = to_int(j["result"], "result"),
                         .side_losses = to_ints(j["side_losses"], "side_losses"),
                         .parameters = {}};
  if (has_starts) l.starts = to_int(j["starts"], "starts");
  if (has_statistics) {
    const std::vector<int> of = to_ints(j["statistics"], "statistics");
    if (of.size() != 2)
      refuse("RC7147: certificate: the statistics of a layer must be [input, output], found {} values",
             of.size());
    l.statistics = of[0];
    l.statistics_result = of[1];
  }
  l.parameters = to_list(j["parameters"], "parameters", [](const json& p) {
    constexpr const char* what = "a parameter of the model";
    if (!p.is_array() || (p.size() != 3 && p.size() != 5) || !p[2].is_boolean())
      refuse(
          "RC7148: certificate: a parameter of the model must be [name, value, trainable], and a rate and a "
          "mean where a router's bias is balanced");
    specification::parameter made{to_text(p[0], what), to_int(p[1], what), p[2].get<bool>()};
    if (p.size() > 3) made.balances = to_balance(p[3], p[4], what);
    return made;
  });
  return l;
}

specification::update to_optimizer(const json& j) {
  if (!j.is_array() || j.size() != 5 || !j[2].is_boolean() || !j[3].is_boolean() || !j[4].is_boolean())
    refuse(
        "RC7149: certificate: the optimizer must be [row, moments, weights in bf16, moments in bf16, "
        "reductions in bf16]");
  specification::update o{to_word(j[0], {"adamw", "sgd"}, "the optimizer"), to_int(j[1], "the optimizer"),
                          j[2].get<bool>(), j[3].get<bool>(), j[4].get<bool>()};
  const bool is_known = o.row == "adamw" ? o.moments == 2 : o.moments == 0 || o.moments == 1;
  if (!is_known)
    refuse("RC7150: certificate: the optimizer is {} with {} moments; adamw has 2, sgd has 0 or 1", o.row,
           o.moments);
  return o;
}

specification::row_facts to_row_facts(const json& j) {
  constexpr const char* what = "a row of the model";
  if (!j.is_array() || j.size() != 6)
    refuse(
        "RC7154: certificate: a row of the model must be [row, ports, rule, needs, attributes, gradients]");
  return {to_text(j[0], what), to_text(j[1], what), to_text(j[2], what),
          to_text(j[3], what), to_text(j[4], what), to_text(j[5], what)};
}

}  // namespace

specification to_model(const json& j) {
  if (j.is_null()) return {};
  std::vector<const char*> fields{"layers", "uses", "tokens", "optimizer"};
  const bool has_rows = j.is_object() && j.contains("rows");  // of the user's
  if (has_rows) fields.push_back("rows");
  expect_fields(j, fields, "the model");
  specification s{to_list(j["layers"], "layers", to_layer), {}, to_count(j["tokens"], "tokens")};
  s.uses = to_list(j["uses"], "uses", [&](const json& u) {
    if (!u.is_array() || u.size() != 3)
      refuse("RC7152: certificate: uses of the model must be [layer, name, parameters]");
    specification::use made{to_int(u[0], "uses"), to_text(u[1], "uses"),
                            to_list(u[2], "uses", [](const json& n) { return to_text(n, "uses"); })};
    if (made.layer < 0 || made.layer >= static_cast<int>(s.layers.size()) ||
        made.parameters.size() != s.layers[static_cast<std::size_t>(made.layer)].parameters.size())
      refuse(
          "RC7153: certificate: the model uses layer {} as \"{}\" with {} parameters; it must name one of "
          "the model's {} layers and give each of that layer's parameters",
          made.layer, made.name, made.parameters.size(), s.layers.size());
    return made;
  });
  if (has_rows) s.rows = to_list(j["rows"], "rows", to_row_facts);
  s.optimizer = to_optimizer(j["optimizer"]);
  return s;
}

}  // namespace rankc::codegen::verifying
