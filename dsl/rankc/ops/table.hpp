// SPDX-License-Identifier: Apache-2.0
// The table of all ops. A user's op is one more op_row, in a separate header; RC225 names what it lacks. A
// type error in any op is RC210.
#pragma once
#include <rankc/ops/attention.hpp>
#include <rankc/ops/balance.hpp>
#include <rankc/ops/conversions.hpp>
#include <rankc/ops/cross_entropy.hpp>
#include <rankc/ops/elementwise.hpp>
#include <rankc/ops/embedding.hpp>
#include <rankc/ops/expert_exchange.hpp>
#include <rankc/ops/experts.hpp>
#include <rankc/ops/linear.hpp>
#include <rankc/ops/norm.hpp>
#include <rankc/ops/padding.hpp>
#include <rankc/ops/parts.hpp>
#include <rankc/ops/positions.hpp>
#include <rankc/ops/router.hpp>
#include <rankc/ops/sequences.hpp>
#include <rankc/ops/softmax.hpp>
#include <rankc/ops/squared_error.hpp>
#include <rankc/trace/complete.hpp>

#include <array>
#include <iterator>

namespace rankc::ops {

/// All rows except the forms of attention and of learned positions.
inline constexpr const op_row* single[]{&replicate,
                                        &all_reduce,
                                        &all_reduce_max,
                                        &all_gather,
                                        &reduce_scatter,
                                        &all_to_all,
                                        &shift,
                                        &shift_back,
                                        &add,
                                        &gelu,
                                        &gelu_grad,
                                        &swiglu,
                                        &swiglu_grad,
                                        &linear,
                                        &linear_dx,
                                        &linear_dw,
                                        &bias,
                                        &bias_grad,
                                        &layer_norm,
                                        &layer_norm_dx,
                                        &layer_norm_dw,
                                        &rms_norm,
                                        &rms_norm_dx,
                                        &rms_norm_dw,
                                        &rope,
                                        &rope_grad,
                                        &merge_attention,
                                        &sink_scores,
                                        &add_sinks,
                                        &add_sinks_grad,
                                        &embedding,
                                        &embedding_grad,
                                        &mask_padding,
                                        &mask_padding_grad,
                                        &row_max,
                                        &exp_sums,
                                        &exp_sums_grad,
                                        &cross_entropy,
                                        &cross_entropy_grad,
                                        &count_labels,
                                        &sum_weights,
                                        &skip_unlabeled,
                                        &masked_cross_entropy,
                                        &masked_cross_entropy_grad,
                                        &weighted_cross_entropy,
                                        &weighted_cross_entropy_grad,
                                        &zeros,
                                        &mul,
                                        &mul_grad,
                                        &scale,
                                        &sigmoid,
                                        &sigmoid_grad,
                                        &head_norm,
                                        &head_norm_dx,
                                        &head_norm_dw,
                                        &softmax,
                                        &softmax_dx,
                                        &split,
                                        &split_heads,
                                        &concat,
                                        &concat_heads,
                                        &softmax_top,
                                        &softmax_top_grad,
                                        &sigmoid_top,
                                        &sigmoid_top_grad,
                                        &softmax_scores,
                                        &sigmoid_scores,
                                        &keep_groups,
                                        &biased_keep_groups,
                                        &softmax_top_by,
                                        &sigmoid_top_by,
                                        &biased_softmax_top_by,
                                        &biased_sigmoid_top_by,
                                        &count_choices,
                                        &normalize,
                                        &normalize_grad,
                                        &arrange,
                                        &arrange_limited,
                                        &own_slots,
                                        &dispatch,
                                        &collect,
                                        &combine,
                                        &combine_grad,
                                        &expert_up,
                                        &expert_down,
                                        &expert_dw,
                                        &to_experts,
                                        &from_experts,
                                        &share_offsets,
                                        &gather_slots,
                                        &scatter_slots,
                                        &gather_offsets,
                                        &softmax_statistics,
                                        &softmax_statistics_grad,
                                        &sigmoid_statistics,
                                        &sigmoid_statistics_grad,
                                        &dropped_statistics,
                                        &push,
                                        &push_grad,
                                        &all_reduce_batch,
                                        &balance_loss,
                                        &balance_loss_grad,
                                        &layer_balance_loss,
                                        &layer_balance_loss_grad,
                                        &z_loss,
                                        &z_loss_grad,
                                        &overflow_loss,
                                        &overflow_loss_grad,
                                        &sequence_mean,
                                        &sequence_mean_grad,
                                        &squared_error,
                                        &squared_error_grad};

/// All rows.
inline constexpr auto all = [] {
  constexpr std::size_t forms = 12 + 8;
  std::array<const op_row*, std::size(single) + forms> rows{};
  std::size_t n = 0;
  for (const op_row* row : single) rows[n++] = row;
  for (const bool documents : {false, true})
    for (const bool gradient : {false, true}) {
      for (const auto layout : {attention_layout::whole, attention_layout::chunks, attention_layout::ring})
        rows[n++] = &find_attention({gradient, layout, documents});
      for (const bool chunks : {false, true}) rows[n++] = &find_position({gradient, chunks, documents});
    }
  return rows;
}();
constexpr bool is_known(const op_row* row) {
  for (const op_row* known : all)
    if (known == row) return true;
  return false;
}

}  // namespace rankc::ops
