// SPDX-License-Identifier: Apache-2.0
#include "element_types.hpp"

#include <algorithm>
#include <iterator>

namespace field {

namespace {

using enum element_type;

constexpr std::string_view whole_numbers[]{"ids",    "targets", "starts",     "chosen",     "kept",
                                           "places", "offsets", "own_places", "own_offsets"};

bool is_wide(element_type t) { return t == f32 || t == f64; }
bool is_real(element_type t) { return is_wide(t) || t == bf16; }

/// The type to which a row rounds its results; bytes: it does not round.
element_type rounded_result(std::string_view row) {
  if (row.ends_with("_e4m3_rows")) return e4m3_rows;
  if (row.ends_with("_e4m3")) return e4m3;
  return row.ends_with("_e5m2") ? e5m2 : bytes;
}

/// The type of a rounded GEMM operand; bytes: it is not rounded.
element_type rounded_operand(std::string_view row, std::string_view port) {
  if (port != "x" && port != "w" && port != "dy") return bytes;
  if (row.ends_with("_fp8_rows")) return e4m3_rows;
  if (!row.ends_with("_fp8")) return bytes;
  return port == "dy" ? e5m2 : e4m3;
}

}  // namespace

rankc::codegen::specification::rounding rounding_of(std::string_view row) {
  using enum rankc::codegen::specification::rounding;
  if (row.ends_with("_fp8_rows")) return fp8_rows;
  return row.ends_with("_fp8") ? fp8 : none;
}

bool takes(std::string_view row, std::string_view port, bool is_result, element_type t) {
  if (std::find(std::begin(whole_numbers), std::end(whole_numbers), port) != std::end(whole_numbers))
    return t == i32;
  const bool is_statistic = port == "statistics";
  const element_type rounded = is_result ? rounded_result(row) : rounded_operand(row, port);
  return rounded == bytes || is_statistic ? is_real(t) : t == rounded;
}

/// A sum over tokens must be at least as wide as f32 and as its addends. So must its copies, multiples and
/// sums; the loss of a narrowed sum is narrowed.
token_sum sum_in_result(std::string_view row, std::string_view port, element_type type,
                        const std::vector<read_number>& reads) {
  constexpr std::string_view sums_over_tokens[]{"dw",    "db",   "dtable", "dgain", "dshift",
                                                "dbias", "loss", "own",    "count"};
  constexpr std::string_view keep_sums[]{"copy", "scale", "add", "push"};
  const auto is_in = [](const auto& list, std::string_view name) {
    return std::find(std::begin(list), std::end(list), name) != std::end(list);
  };
  // mul_grad's db is the gradient of an activation.
  const bool begins = row != "mul_grad" && is_in(sums_over_tokens, port);
  if (!begins && !is_in(keep_sums, row)) return token_sum::none;
  token_sum sum = begins ? token_sum::wide : token_sum::none;
  std::size_t widest = begins ? 4 : 0;
  for (const read_number& r : reads) {
    sum = std::max(sum, r.sum);
    if (r.type != i32 && (begins || r.sum != token_sum::none)) widest = std::max(widest, size_of(r.type));
  }
  return sum != token_sum::none && size_of(type) < widest ? token_sum::narrowed : sum;
}

bool may_read_rounded_sums(std::string_view row) { return row == "copy" || row == "scale" || row == "add"; }

bool may_be_sent_in_bf16(const rankc::load_balance& by, const rankc::codegen::specification::update& recipe) {
  return recipe.bf16_reductions && !by.any();
}

bool keeps(rankc::codegen::holding_kind kind, element_type t,
           const rankc::codegen::specification::update& by) {
  using enum rankc::codegen::holding_kind;
  switch (kind) {
    case ids:
    case targets:
    case starts:
      return t == i32;
    case input:  // the weights of labels
      return is_wide(t);
    case weight:
      return is_wide(t) || (by.bf16_weights && t == bf16);
    case first_moment:
    case second_moment:
      return is_wide(t) || (by.bf16_moments && t == bf16);
    case loss:
    case norm:
      return is_wide(t);
    default:
      return is_real(t);
  }
}

}  // namespace field
