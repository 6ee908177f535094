// SPDX-License-Identifier: Apache-2.0
// The training recipe: the batch, the optimizer, the learning rate, and the precision of a step.
#pragma once
#include <rankc/contract/lr_schedule.hpp>
#include <rankc/recipe/optimizers.hpp>

#include <concepts>
#include <cstddef>
#include <limits>
#include <span>
#include <string_view>

namespace rankc {

enum class precision : unsigned char { f32, f64, bf16 };
using enum precision;

/// The size of an element. Units: bytes.
constexpr std::size_t size_of(precision p) {
  if (p == f64) return 8;
  return p == f32 ? 4 : 2;
}

/// Activation recomputation in repeated layers. With `full`, forward saves only the input of a layer, and
/// backward recomputes the rest. Each other flag recomputes the results of ops of one kind, with the
/// all-gathers that follow them. With `every` = n, every n-th repeated layer recomputes; for n = 2, these
/// are layers.1, layers.3, ...
/// Errors: RC239, from `check_recompute`.
/// Source: Chen et al. 2016; by kinds of ops: Korthikanti et al. 2022.
struct recomputation {
  bool full = false, attention = false, activations = false, norms = false;
  int every = 1;
  constexpr bool any() const { return full || attention || activations || norms; }
  /// Whether a layer recomputes, by its index among the repeated layers.
  constexpr bool is_of(int number) const { return any() && (number + 1) % every == 0; }
  constexpr bool operator==(const recomputation&) const = default;
};

inline constexpr std::size_t max_names = 32;

/// A set of parameters, by their names in a layer. A name selects the parameter in all repetitions of the
/// layer.
struct parameter_names {
  std::string_view of[max_names];

  constexpr parameter_names() {  // g++ 12 reads no member of a constant that the code does not write
    for (std::string_view& name : of) name = "";
  }
  template <std::convertible_to<std::string_view>... Name>
    requires(sizeof...(Name) > 0 && sizeof...(Name) <= max_names)
  constexpr parameter_names(const Name&... names) : of{std::string_view(names)...} {}

  constexpr std::span<const std::string_view> all() const {
    std::size_t n = max_names;
    while (n > 0 && of[n - 1].empty()) --n;
    return {of, n};
  }
  constexpr bool has(std::string_view name) const {
    for (std::string_view each : all())
      if (each == name) return true;
    return false;
  }
  constexpr bool operator==(const parameter_names&) const = default;
};

/// The type of the operands of linear layers in repeated layers.
/// - plain: the plan's precision.
/// - fp8: inputs and weights are rounded to e4m3, gradients to e5m2. Each tensor on a rank has one scale: the
///   largest number of the type over the largest number of the tensor.
/// - fp8_rows: inputs, weights and gradients are rounded to e4m3. Each row along the summed dim has a scale,
///   rounded down to a power of two. Hopper GPUs have such GEMMs.
/// Sums are in f32. Weights, results and all other ops keep their types. A layer stays plain if its tokens,
/// inputs or outputs on a rank are not a multiple of 16. Routers and LoRA GEMMs always stay plain.
/// Source: Micikevicius et al. 2022; the scales are those of torchao's tensorwise and rowwise recipes.
enum class linear_precision : unsigned char { plain, fp8, fp8_rows };
inline constexpr linear_precision fp8 = linear_precision::fp8, fp8_rows = linear_precision::fp8_rows;
inline constexpr std::string_view linear_precision_names[]{"plain", "fp8", "fp8_rows"};

/// LoRA: `linear` of a target w (out, in) returns x w^T + alpha / rank x a^T b^T. a (rank, in) and b (out,
/// rank) are trained, and w is frozen. <w>.lora_a is initialized uniformly in +-1 / sqrt(in), <w>.lora_b with
/// zeros. All other parameters are frozen, except those in `trained`.
/// Source: Hu et al. 2021; PEFT for the initialization of a, Kaiming-uniform with slope sqrt(5).
struct low_rank_adaptation {
  int rank = 0;
  double alpha = 0;
  parameter_names targets{}, trained{};
  constexpr bool any() const { return *this != low_rank_adaptation{}; }
  constexpr bool operator==(const low_rank_adaptation&) const = default;
};

/// The rounding of weights and moments that are kept in bf16.
enum class bf16_rounding : unsigned char { nearest, stochastic };
using enum bf16_rounding;

/// The learning rate over the steps, as a list of pieces: {lr::warm_up(20), lr::constant(300),
/// lr::linear(80, 0)}. Other pieces are lr::cosine and lr::wsd.
using runtime::lr_schedule;
namespace lr = runtime::lr;

/// The ignored_label of a recipe that ignores no label.
inline constexpr int every_label_counts = std::numeric_limits<int>::min();

/// The recipe of a training run: the optimizer, clipping by the global norm, and the learning rate over the
/// steps.
/// - lr, weight_decay: every optimizer uses them. Only parameters with more than one dim decay. With lr 0 a
///   step leaves the weights unchanged.
/// - min_lr, warmup_steps, decay_steps: the learning rate rises in a warm-up, then falls along a cosine to
///   min_lr. lr_schedule replaces the three.
/// - deterministic: a GPU program computes the same bits in each run, which takes more time. A host program
///   always does.
/// - moments: the type of moments. f32 means f64 in an f64 program.
/// - reductions: bf16 rounds gradients for their reduction over dp. Sender and receiver keep them in f32.
/// - master_weights: false keeps the weights of a bf16 plan in bf16 only.
/// - rounding_seed: stochastic rounding depends on it, the step, the name of the parameter and the index of
///   the element in the whole parameter. So all parallel layouts compute the same bits.
/// - frozen: parameters without gradients and moments. With `lora`, all parameters other than its own are
///   frozen.
/// - end_of_document: the token of the vocabulary that ends each document. The tokens of a document attend
///   only to that document, and its positions count from 0. A document that began before the sequence is
///   treated as if it began with the sequence. -1: a sequence is one document.
/// - ignored_label: a negative number. A token with this label has no loss, and the loss is the mean over the
///   other labels of the step. A step in which every label is ignored changes nothing. Router losses remain
///   means over all tokens. By default every label counts.
/// - ignore_across_documents: a document's last token has no loss, because its label is the first token of
///   the next document. It needs end_of_document and ignored_label.
/// - token_weights: each label has a weight, which is an input of the step. The loss is the sum of weight
///   times loss, divided by the sum of the weights of the step. An ignored label has weight 0. A step whose
///   weights are all 0 changes nothing.
/// Units: seq in tokens, global_batch in sequences per step; clip 0: no clipping; decay_steps 0: lr is
///        constant after the warm-up.
/// Errors: RC220, RC233 to RC237, RC239, RC241 to RC249, RC259, RC264, RC265, RC267, RC268, RC270
///         to RC273, from `check_batch`, `check_recipe`, `check_recompute` and `tuning`.
struct training {
  int seq, global_batch;
  rankc::precision precision = bf16;
  double lr = 3e-4, weight_decay = 0.1, clip = 1.0;
  int warmup_steps = 0, decay_steps = 0;
  double min_lr = 0;
  rankc::lr_schedule lr_schedule = {};
  bool deterministic = false;
  recomputation recompute = {};
  rankc::optimizer optimizer = adamw{};
  rankc::precision moments = f32;
  rankc::precision reductions = f32;
  linear_precision linears = linear_precision::plain;
  bool master_weights = true;
  bf16_rounding rounding = nearest;
  int rounding_seed = 0;
  parameter_names frozen = {};
  low_rank_adaptation lora = {};
  int end_of_document = -1;
  int ignored_label = every_label_counts;
  bool ignore_across_documents = false;
  bool token_weights = false;
  constexpr bool ignores_labels() const { return ignored_label != every_label_counts; }
  /// Whether the loss is divided by the number of labels that count, or by the sum of their weights.
  constexpr bool counts_labels() const { return ignores_labels() || token_weights; }
  constexpr bool has_documents() const { return end_of_document != -1; }
  /// The pieces of its learning rate. Without lr_schedule, these are a warm-up of warmup_steps and a cosine
  /// of decay_steps.
  constexpr rankc::lr_schedule schedule_of_lr() const {
    rankc::lr_schedule pieces = lr_schedule;
    if (pieces.any()) return pieces;
    if (warmup_steps > 0) pieces.add(rankc::lr::warm_up(warmup_steps));
    if (decay_steps > 0) pieces.add(rankc::lr::cosine(decay_steps, min_lr));
    return pieces;
  }
  /// The learning rate that the program uses in step `step`, counted from 1.
  constexpr double learning_rate(long long step) const {
    return runtime::learning_rate(schedule_of_lr(), lr, step);
  }
  /// Whether a parameter is trained, unless its layer freezes it.
  constexpr bool trains(std::string_view name) const {
    return !frozen.has(name) && (!lora.any() || lora.trained.has(name));
  }
  constexpr bool operator==(const training&) const = default;
};

}  // namespace rankc
