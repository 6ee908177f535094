// SPDX-License-Identifier: Apache-2.0
#include "call_numbers.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <span>
#include <stdexcept>

#include "domain.hpp"
#include "facts_text.hpp"
#include "refusal.hpp"

namespace rankc::codegen::algebra {

namespace {

struct call_line {
  std::string_view rows, words;
};

constexpr call_line call_lines[]{
    {"layer_norm rms_norm head_norm normalize normalize_grad scale cross_entropy cross_entropy_grad "
     "squared_error squared_error_grad mask_padding mask_padding_grad "
     "add_layer_norm bias_add_layer_norm add_rms_norm softmax_grad softmax_sums_grad "
     "masked_cross_entropy masked_cross_entropy_grad masked_softmax_grad masked_softmax_sums_grad "
     "weighted_cross_entropy weighted_cross_entropy_grad weighted_softmax_grad weighted_softmax_sums_grad "
     "layer_norm_e4m3 layer_norm_e4m3_rows rms_norm_e4m3 rms_norm_e4m3_rows",
     "number"},
    {"rope rope_grad", "h"},
    {"attention attention_grad document_attention document_attention_grad", "rows seq k d w"},
    {"chunk_position chunk_position_grad document_chunk_position document_chunk_position_grad", "rows cp"},
    {"chunk_attention chunk_attention_grad document_chunk_attention document_chunk_attention_grad",
     "rows seq k d w cp"},
    {"ring_attention ring_attention_grad document_ring_attention document_ring_attention_grad",
     "rows seq k d w ring number"},
    {"merge_attention add_sinks add_sinks_grad", "rows w"},
    {"sink_scores", "d"},
    {"split_heads concat_heads", "h l r w"},
    {"keep_groups biased_keep_groups", "g e number"},
    {"arrange_limited", "rows seq number"},
    {"expert_up expert_down expert_dw expert_down_add expert_down_two", "t l r"},
    {"softmax_statistics softmax_statistics_grad sigmoid_statistics sigmoid_statistics_grad", "l"},
    {"sequence_mean sequence_mean_grad", "rows seq"},
    {"dropped_statistics", "r l"},
    {"balance_loss balance_loss_grad layer_balance_loss layer_balance_loss_grad z_loss z_loss_grad "
     "overflow_loss overflow_loss_grad",
     "l r number"},
};

/// The size of an axis, or of a unit, in the first tensor that has it.
std::int64_t length_of(const op& o, const fact& f, char letter) {
  for (std::size_t i = 0; i < f.ports.size(); ++i) {
    const view& v = o.views[i];
    for (std::size_t a = 0; a < f.ports[i].axes.size(); ++a) {
      const axis_use& axis = f.ports[i].axes[a];
      if (axis.unit == letter) return v.unit;
      if (axis.of == letter) return v.shape[a] / (axis.unit ? v.unit : 1);
    }
  }
  throw std::logic_error(f.row + " has no axis " + letter);
}

double number_of(const op& o, const fact& f, const std::string& word) {
  if (word == "rows") return static_cast<double>(o.rows);
  if (word == "seq") return static_cast<double>(o.seq);
  if (word == "number" || word == "cp") return o.number;
  if (word == "ring") return static_cast<double>(o.rows * o.seq / length_of(o, f, 't'));
  constexpr auto& of_attention = attention_setting::names;
  const auto name = std::find(of_attention.begin(), of_attention.end(), word);
  if (name != of_attention.end())
    return o.attention.numbers()[static_cast<std::size_t>(name - of_attention.begin())];
  return static_cast<double>(length_of(o, f, word[0]));
}

/// The words of the op's call: those of its row, and those of an attention_setting that is not plain.
std::vector<std::string> words_of(const op& o, const fact& f) {
  std::vector<std::string> all = f.numbers_of_call;
  constexpr auto& of_attention = attention_setting::names;
  if (!o.attention.is_plain()) all.insert(all.end(), of_attention.begin(), of_attention.end());
  return all;
}

[[noreturn]] void refuse_number(double found, const std::string& word, double expected) {
  throw refusal("RC7751: the call has {} as {}; expected {}", found,
                word.size() == 1 ? axis_name(word[0]) : word, expected);
}

bool is_size(const op& o, double given) {
  const auto is = [&](std::int64_t size) { return static_cast<double>(size) == given; };
  return is(o.rows) || is(o.seq) || std::any_of(o.views.begin(), o.views.end(), [&](const view& v) {
           return is(v.unit) || std::any_of(v.shape.begin(), v.shape.end(),
                                            [&](std::int64_t size) { return is(size) || is(size / v.unit); });
         });
}

/// Checks the call of a user's kernel: it passes sizes of its op, in an order that only the row knows, and
/// the number last.
void check_call_of_user(const op& o, const fact& f) {
  std::span<const double> sizes = o.given;
  if (f.reads_number && o.number != 0) {
    if (sizes.empty()) refuse_number(0, "number", o.number);
    if (sizes.back() != o.number) refuse_number(sizes.back(), "number", o.number);
    sizes = sizes.first(sizes.size() - 1);
  }
  for (const double given : sizes)
    if (!is_size(o, given))
      throw refusal("RC7778: the call names the size {}; expected sizes of the op's tensors, rows or seq",
                    given);
}

}  // namespace

std::vector<std::string> numbers_of_call(std::string_view row) {
  static const std::map<std::string, std::vector<std::string>, std::less<>> of_rows = [] {
    std::map<std::string, std::vector<std::string>, std::less<>> made;
    for (const call_line& line : call_lines)
      for (const std::string& name : parts_of(line.rows, " ")) made[name] = parts_of(line.words, " ");
    return made;
  }();
  const auto known = of_rows.find(row);
  return known == of_rows.end() ? std::vector<std::string>() : known->second;
}

std::vector<double> call_numbers(const op& o, const fact& f) {
  std::vector<double> all;
  for (const std::string& word : words_of(o, f)) all.push_back(number_of(o, f, word));
  return all;
}

void check_call_numbers(const op& o, const fact& f) {
  if (f.of_user) return check_call_of_user(o, f);
  const std::vector<std::string> words = words_of(o, f);
  if (o.given.size() != words.size())
    throw refusal("RC7750: the call has {} sizes and numbers; expected {}", o.given.size(), words.size());
  const std::vector<double> expected = call_numbers(o, f);
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (o.given[i] != expected[i]) refuse_number(o.given[i], words[i], expected[i]);
}

}  // namespace rankc::codegen::algebra
