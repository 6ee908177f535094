// SPDX-License-Identifier: Apache-2.0
#include "hugging_face_names.hpp"

#include <rankc/runtime/failure.hpp>

#include <algorithm>
#include <cctype>
#include <string_view>

namespace rankc::runtime {
namespace {

using nlohmann::json;

rows_of rows_named(const std::string& name) {
  if (name == "positions") return rows_of::positions;
  return name == "vocabulary" ? rows_of::vocabulary : rows_of::plan;
}

head_order heads_of(const json& j) {
  if (!j.contains("heads")) return {};
  const json& heads = j["heads"];
  return {heads.at("elements"), heads.at("turned"), heads.at("neighbours")};
}

tensor_rule tensor_of(const json& j) {
  return {
      j.at("ours"),           j.at("theirs"), j.value("transposed", false), rows_named(j.value("rows", "")),
      j.value("tied_to", ""), heads_of(j),    j.value("added", 0.0)};
}

config_rule field_of(const json& j) {
  config_rule rule{.key = j.at("key"),
                   .value = j.at("value"),
                   .missing = j.value("missing", json()),
                   .of = {},
                   .over = {},
                   .also = j.value("also", ""),
                   .rotary = j.value("rotary", false),
                   .layers = j.value("layers", ""),
                   .nullable = j.value("nullable", false)};
  if (!j.contains("follows")) return rule;
  const json& follows = j["follows"];
  rule.of = follows.at("of");
  rule.over = follows.value("over", "");
  rule.factor = follows.at("factor");
  return rule;
}

balance_keys balance_of(const json& j) {
  if (!j.contains("balance")) return {};
  const json& b = j["balance"];
  return {b.at("coefficient"), b.at("enabled"), b.at("value")};
}

template <class Read>
auto read_all(const json& list, Read read) {
  std::vector<decltype(read(list))> all;
  for (const json& row : list) all.push_back(read(row));
  return all;
}

/// A name split into its layer number and the rest.
struct numbered {
  std::string general, number;  // "layers.#.wq", "12"
};
numbered without_layer(const std::string& name) {
  constexpr std::string_view layers = "layers.";
  if (!name.starts_with(layers)) return {name, ""};
  const auto end = std::find_if_not(name.begin() + layers.size(), name.end(),
                                    [](unsigned char c) { return std::isdigit(c); });
  numbered n{name, std::string(name.begin() + layers.size(), end)};
  n.general.replace(layers.size(), n.number.size(), "#");
  return n;
}

/// Whether the order is of whole pairs, some of which turn.
bool is_order(const head_order& h) {
  return h.elements == 0 ||
         (h.elements % 2 == 0 && h.turned % 2 == 0 && h.turned > 0 && h.turned <= h.elements);
}

/// Checks that the rows of a model are consistent.
/// Errors: failure (1) that names the first row that is not.
void check_rows(const description& about, const hugging_face_model& model) {
  const auto refuse = [&](const tensor_rule& r, const char* why) {
    throw failure(1, "RC6547: plan {}: in the hugging_face_format of its model the row {}, {}, {}",
                  about.name, r.ours, r.theirs, why);
  };
  for (auto r = model.tensors.begin(); r != model.tensors.end(); ++r) {
    if (r->of_experts() && model.experts == 0) refuse(*r, "is of experts (@), but `experts` is 0");
    if ((r->ours.find('#') == r->ours.npos) != (r->theirs.find('#') == r->theirs.npos))
      refuse(*r, "has the number of a layer (#) in one name only");
    if (r->rows == rows_of::positions && r->transposed)
      refuse(*r, "has the rows of positions, which cannot be transposed");
    if (!is_order(r->heads)) refuse(*r, "has an order of heads that does not fit them");
    for (auto other = model.tensors.begin(); other != r; ++other) {
      if (other->ours == r->ours) refuse(*r, "is the second for this tensor");
      if (other->theirs == r->theirs && (other->transposed != r->transposed || other->rows != r->rows))
        refuse(*r, "differs in `transposed` or `rows` from another part of the same tensor");
    }
  }
}

std::string replaced(std::string name, char mark, const std::string& by) {
  for (auto at = name.find(mark); at != name.npos; at = name.find(mark, at + by.size()))
    name.replace(at, 1, by);
  return name;
}

}  // namespace

hugging_face_model hugging_face_model_of(const description& about) {
  const json root = json::parse(about.json, nullptr, false);
  if (!root.is_object() || !root.contains("hugging_face"))
    throw failure(
        1,
        "RC6535: plan {}: its model declares no names of Hugging Face's files; give the model a member "
        "hugging_face(), as models::gpt2 has, and generate the program again",
        about.name);
  const json& j = root["hugging_face"];
  hugging_face_model model{.type = j.at("model_type"),
                           .architecture = j.at("architecture"),
                           .prefix = j.at("prefix"),
                           .positions = j.at("positions"),
                           .vocabulary = j.at("vocabulary"),
                           .tensors = read_all(j.at("tensors"), tensor_of),
                           .config = read_all(j.at("fields"), field_of),
                           .exported = read_all(j.value("exported", json::array()), field_of),
                           .buffers = j.value("buffers", std::vector<std::string>{}),
                           .experts = j.value("experts", std::size_t{0}),
                           .balance = balance_of(j)};
  check_rows(about, model);
  return model;
}

std::size_t named_tensor::first_row(std::size_t n) const {
  std::size_t row = 0;
  for (std::size_t i = 0; i < n; ++i) row += rows_of_part(i);
  return row;
}

named_tensor find_tensor(const hugging_face_model& model, const description& about,
                         const std::vector<global_parameter>& all, const global_parameter& p) {
  const auto [general, number] = without_layer(p.name);
  const auto rule = std::find_if(model.tensors.begin(), model.tensors.end(),
                                 [&](const tensor_rule& r) { return r.ours == general; });
  if (rule == model.tensors.end())
    throw failure(1, "RC6545: plan {}: parameter {} has no tensor in Hugging Face's {} models", about.name,
                  p.name, model.type);
  named_tensor named{*rule, {}, {}, 0};
  const std::string theirs = replaced(rule->theirs, '#', number);
  for (std::size_t e = 0; rule->of_experts() && e < model.experts; ++e)
    named.theirs.push_back(replaced(theirs, '@', std::to_string(e)));
  if (!rule->of_experts()) named.theirs.push_back(theirs);
  for (const tensor_rule& other : model.tensors) {
    if (other.theirs != rule->theirs) continue;
    const std::string ours = replaced(other.ours, '#', number);
    const global_parameter* part = ours == p.name ? &p : find_parameter(all, ours);
    if (part == nullptr)
      throw failure(
          1, "RC6546: plan {}: tensor {} of Hugging Face's files joins {} and {}, which the plan lacks",
          about.name, named.theirs.front(), p.name, ours);
    if (ours == p.name) named.part = named.parts.size();
    named.parts.push_back(part);
  }
  return named;
}

void check_hugging_face_names(const description& about, const std::vector<global_parameter>& parameters) {
  const hugging_face_model model = hugging_face_model_of(about);
  for (const global_parameter& p : parameters)
    if (!is_beside(p, parameters)) find_tensor(model, about, parameters, p);
}

}  // namespace rankc::runtime
