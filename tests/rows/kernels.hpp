// SPDX-License-Identifier: Apache-2.0
// The kernels of rows behind one interface: operands, sizes, and whether to accumulate. A row names its
// kernel and its sizes.
#pragma once
#include <rankc/runtime/program.hpp>

#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>

/// One line for each kernel of both targets, and for those that only CUDA has.
// clang-format off
#define RANKC_KERNELS_OF_BOTH(X)                                                                            \
  X(embedding) X(embedding_grad) X(position) X(position_grad) X(layer_norm) X(layer_norm_dx)                \
  X(layer_norm_dw) X(rms_norm) X(rms_norm_dx) X(rms_norm_dw) X(linear) X(linear_dx) X(linear_dw) X(bias)    \
  X(bias_grad) X(rope) X(rope_grad) X(attention) X(attention_grad) X(gelu) X(gelu_grad) X(swiglu)           \
  X(swiglu_grad) X(add) X(mul) X(mul_grad) X(scale) X(sigmoid) X(sigmoid_grad) X(split) X(concat)           \
  X(softmax) X(softmax_dx) X(row_max) X(exp_sums) X(exp_sums_grad) X(cross_entropy) X(cross_entropy_grad)   \
  X(sequence_mean) X(sequence_mean_grad) X(squared_error) X(squared_error_grad)                             \
  X(clear) X(copy) X(chunk_position) X(chunk_position_grad) X(chunk_attention) X(chunk_attention_grad)      \
  X(ring_attention) X(ring_attention_grad) X(merge_attention) X(document_position)                          \
  X(document_position_grad) X(document_chunk_position) X(document_chunk_position_grad)                      \
  X(document_attention) X(document_attention_grad) X(document_chunk_attention)                              \
  X(document_chunk_attention_grad) X(document_ring_attention) X(document_ring_attention_grad)               \
  X(softmax_top) X(softmax_top_grad) X(sigmoid_top) X(sigmoid_top_grad) X(softmax_scores) X(sigmoid_scores) \
  X(keep_groups) X(biased_keep_groups) X(softmax_top_by) X(sigmoid_top_by) X(biased_softmax_top_by)         \
  X(biased_sigmoid_top_by) X(count_choices) X(normalize) X(normalize_grad) X(arrange) X(arrange_limited)    \
  X(own_slots) X(dispatch) X(collect) X(softmax_statistics) X(softmax_statistics_grad)                      \
  X(sigmoid_statistics) X(sigmoid_statistics_grad) X(dropped_statistics) X(push) X(push_grad)               \
  X(balance_loss) X(balance_loss_grad) X(layer_balance_loss) X(layer_balance_loss_grad) X(z_loss)           \
  X(z_loss_grad) X(overflow_loss) X(overflow_loss_grad) X(combine) X(combine_grad) X(grouped_linear)        \
  X(grouped_linear_dx) X(grouped_linear_dw) X(to_e4m3) X(to_e5m2) X(linear_fp8) X(linear_dx_fp8)            \
  X(linear_dw_fp8) X(to_e4m3_rows) X(linear_fp8_rows) X(linear_dx_fp8_rows) X(linear_dw_fp8_rows)           \
  X(count_labels) X(skip_unlabeled) X(masked_cross_entropy) X(masked_cross_entropy_grad) \
  X(sum_weights) X(weighted_cross_entropy) X(weighted_cross_entropy_grad) \
  X(sink_scores) X(add_sinks) X(add_sinks_grad) X(mask_padding) X(mask_padding_grad)
#define RANKC_KERNELS_OF_CUDA(X)                                                                            \
  X(linear_bias) X(linear_add) X(linear_bias_add) X(linear_gelu) X(linear_bias_gelu) X(linear_dx_gelu)      \
  X(linear_dx_gelu_bias) X(linear_dw_bias) X(bias_add) X(add_layer_norm) X(bias_add_layer_norm)             \
  X(add_rms_norm) X(layer_norm_grad) X(layer_norm_grad_add) X(layer_norm_grad_add_bias) X(rms_norm_grad)    \
  X(rms_norm_grad_add) X(softmax_sums) X(softmax_grad) X(softmax_sums_grad) X(grouped_linear_add)           \
  X(grouped_linear_two) X(layer_norm_e4m3) X(rms_norm_e4m3) X(gelu_e4m3) X(swiglu_e4m3) X(swiglu_grad_e5m2) \
  X(linear_bias_fp8) X(linear_add_fp8) X(linear_bias_add_fp8) X(layer_norm_e4m3_rows) X(rms_norm_e4m3_rows) \
  X(gelu_e4m3_rows) X(swiglu_e4m3_rows) X(swiglu_grad_e4m3_rows) X(linear_bias_fp8_rows)                    \
  X(linear_add_fp8_rows) X(linear_bias_add_fp8_rows) X(masked_softmax_grad) X(masked_softmax_sums_grad) \
  X(weighted_softmax_grad) X(weighted_softmax_sums_grad)
// clang-format on

namespace rankc::test::rows {

#define RANKC_NAME(kernel) #kernel,
inline constexpr std::string_view kernels_of_both[]{RANKC_KERNELS_OF_BOTH(RANKC_NAME)},
    kernels_of_cuda[]{RANKC_KERNELS_OF_CUDA(RANKC_NAME)};
#undef RANKC_NAME

template <class Lane>
struct kernel {
  std::string_view name;
  std::function<void(const Lane&, std::span<const runtime::at>, std::span<const double>, bool adds)> call;
};

/// A kernel with uniform arguments. A kernel that takes an attention_setting gets a default one.
/// Errors: std::logic_error if the numbers of operands or sizes do not match.
template <class Lane, class... Arguments>
kernel<Lane> uniform(std::string_view name, void (*f)(const Lane&, Arguments...)) {
  return {
      name,
      [=](const Lane& on, std::span<const runtime::at> operands, std::span<const double> sizes, bool adds) {
        constexpr std::size_t taken = (0 + ... + std::size_t{std::is_same_v<Arguments, runtime::at>}),
                              flags = (0 + ... + std::size_t{std::is_same_v<Arguments, bool>}),
                              settings = (0 + ... +
                                          std::size_t{std::is_same_v<Arguments, const attention_setting&>});
        if (operands.size() != taken || sizes.size() != sizeof...(Arguments) - taken - flags - settings)
          throw std::logic_error(std::string(name) + ": its row calls it with other operands or sizes");
        std::size_t operand = 0, size = 0;
        const auto next = [&]<class A>(std::type_identity<A>) {
          if constexpr (std::is_same_v<A, runtime::at>) return operands[operand++];
          else if constexpr (std::is_same_v<A, bool>) return adds;
          else if constexpr (std::is_same_v<A, attention_setting>) return attention_setting{};
          else return static_cast<A>(sizes[size++]);
        };
        std::apply([&](Arguments... a) { f(on, a...); },
                   std::tuple<std::remove_cvref_t<Arguments>...>{
                       next(std::type_identity<std::remove_cvref_t<Arguments>>{})...});
      }};
}

}  // namespace rankc::test::rows
