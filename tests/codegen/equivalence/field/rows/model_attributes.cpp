// SPDX-License-Identifier: Apache-2.0
#include "model_attributes.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

namespace field {

namespace {

/// Rows whose attributes are the model's. `found_by` is the operand whose content identifies the model's op.
/// An attribute is seq, number, window, softcap, scale, causal, rounding, or a port, which stands for its
/// unit.
struct rows_of_model {
  std::vector<std::string_view> rows;
  std::string_view found_by;
  std::vector<std::string_view> attributes;
};

const std::vector<rows_of_model>& all_of_model() {
  static const std::vector<rows_of_model> all{
      {{"linear", "linear_dx"}, "w", {"rounding"}},
      {{"linear_dw"}, "dy", {"rounding"}},
      {{"position", "document_position"}, "x", {"seq"}},
      {{"position_grad", "document_position_grad"}, "dy", {"seq"}},
      {{"rope"}, "x", {"x"}},
      {{"rope_grad"}, "dy", {"dy"}},
      {{"attention", "attention_grad", "document_attention", "document_attention_grad"},
       "q",
       {"seq", "window", "softcap", "scale", "causal", "q", "k", "v"}},
      {{"split_heads"}, "x", {"first", "second"}},
      {{"concat_heads"}, "first", {"first", "second"}},
      {{"layer_norm", "rms_norm", "head_norm", "scale", "normalize"}, "x", {"number"}},
      {{"normalize_grad"}, "dy", {"number"}},
      {{"keep_groups", "biased_keep_groups"}, "scores", {"number", "y"}},
      {{"balance_loss", "layer_balance_loss", "z_loss", "overflow_loss"}, "s", {"number", "s", "whole"}},
      {{"balance_loss_grad", "layer_balance_loss_grad", "z_loss_grad", "overflow_loss_grad"},
       "whole",
       {"number", "whole"}},
      {{"cross_entropy", "cross_entropy_grad", "masked_cross_entropy", "masked_cross_entropy_grad",
        "weighted_cross_entropy", "weighted_cross_entropy_grad"},
       "sums",
       {"number"}},
      {{"squared_error", "squared_error_grad"}, "x", {"number"}},
      {{"sequence_mean", "sequence_mean_grad"}, "x", {"seq"}}};
  return all;
}

/// The model's row for a program's row on chunks of sequences, or on one step of a ring.
std::string name_in_model(std::string_view row) {
  std::string name(row);
  for (const std::string_view part : {"chunk_", "ring_"})
    if (const std::size_t at = name.find(part); at != name.npos) name.erase(at, part.size());
  return name;
}

/// The attributes of a row; null if the model determines none.
const rows_of_model* find_of_model(const std::string& name) {
  static const std::map<std::string_view, const rows_of_model*, std::less<>> by_name = [] {
    std::map<std::string_view, const rows_of_model*, std::less<>> of;
    for (const rows_of_model& t : all_of_model())
      for (const std::string_view row : t.rows) of[row] = &t;
    return of;
  }();
  const auto at = by_name.find(name);
  return at == by_name.end() ? nullptr : at->second;
}

double value_of(const call& c, std::string_view attribute) {
  if (attribute == "seq") return static_cast<double>(c.seq);
  if (attribute == "number") return c.number;
  if (attribute == "window") return c.attention.window;
  if (attribute == "softcap") return c.attention.softcap;
  if (attribute == "scale") return c.attention.scale;
  if (attribute == "causal") return c.attention.causal;
  if (attribute == "rounding") return static_cast<double>(c.rounds);
  return static_cast<double>(c.wants(attribute) ? c.wanted(attribute).unit : c.in(attribute).is.unit);
}

/// The key of the row and the elements that identify the model's op, and the attributes of the call.
struct attributes_of_call {
  std::uint64_t key;
  const std::vector<element>& elements;
  std::vector<double> attributes;
};
std::optional<attributes_of_call> read(const row& r, const call& c) {
  const std::string name = name_in_model(r.name);
  const rows_of_model* found = find_of_model(name);
  if (!found) return {};
  attributes_of_call of{key_of(name), c.in(found->found_by).of, {}};
  for (const std::string_view attribute : found->attributes) of.attributes.push_back(value_of(c, attribute));
  return of;
}

}  // namespace

std::size_t model_attributes::index_of(const std::vector<double>& attributes) {
  const auto at = std::find(all_.begin(), all_.end(), attributes);
  const auto index = static_cast<std::size_t>(at - all_.begin());
  if (at == all_.end()) all_.push_back(attributes);
  return index;
}

void model_attributes::note(const row& r, const call& c) {
  const std::optional<attributes_of_call> op = read(r, c);
  if (!op) return;
  const std::size_t index = index_of(op->attributes);
  for (const element e : op->elements) {
    if (!is_drawn(e)) continue;
    const auto [at, is_new] = of_elements_.try_emplace(mix(op->key, e), index);
    if (!is_new && at->second != index) at->second = several;
  }
}

bool model_attributes::agree(const row& r, const call& c) const {
  const std::optional<attributes_of_call> op = read(r, c);
  if (!op) return true;
  for (const element e : op->elements) {
    if (!is_drawn(e)) continue;
    const auto at = of_elements_.find(mix(op->key, e));
    return at == of_elements_.end() || at->second == several || all_[at->second] == op->attributes;
  }
  return true;
}

}  // namespace field
