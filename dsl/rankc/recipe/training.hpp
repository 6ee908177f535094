// SPDX-License-Identifier: Apache-2.0
// The training recipe: everything a step computes besides the model.
#pragma once
#include <rankc/contract/lr_schedule.hpp>

#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>

namespace rankc {

enum class precision : unsigned char { f32, f64, bf16 };
using enum precision;

/// Units: bytes of a number.
constexpr std::size_t size_of(precision p) {
  if (p == f64) return 8;
  return p == f32 ? 4 : 2;
}

/// What backward computes again instead of keeping it from forward, in repeated layers: everything, so that
/// of a layer only its input is kept, or the results of ops of some kinds, with the gathers that follow them.
/// Of the repeated layers, which are counted through the model, every so many-th does so: with `every` 2
/// layers.1, layers.3, ...
/// Errors: RC239, from `check_recompute`.
/// Source: Chen et al. 2016; by kinds of ops: Korthikanti et al. 2022.
struct recomputation {
  bool full = false, attention = false, activations = false, norms = false;
  int every = 1;
  constexpr bool any() const { return full || attention || activations || norms; }
  /// Of a layer by its number among the repeated ones.
  constexpr bool is_of(int number) const { return any() && (number + 1) % every == 0; }
  constexpr bool operator==(const recomputation&) const = default;
};

inline constexpr std::size_t max_names = 32;

/// Parameters by the names that layers declare them by: of a repeated layer those of all its repetitions.
struct parameter_names {
  std::string_view of[max_names];

  constexpr parameter_names() {  // g++ 12 cannot read, in a constant, what it has not been told to write
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

/// What products of linear layers in repeated layers are of: numbers of the plan's precision, or of eight
/// bits. With `fp8` what such a layer is given and its weights are rounded to e4m3, gradients to e5m2, each
/// tensor on a rank multiplied by the largest number of its type over its own largest; sums are in f32,
/// weights, what products give and all else as without. With `fp8_rows` all are rounded to e4m3, each row of
/// what a product sums along by a scale of its own, the next lower power of two; GPUs of Hopper have such
/// products. Both are of layers that have multiples of 16 of tokens, inputs and outputs on a rank; routers
/// and what lora adds are left out.
/// Source: Micikevicius et al. 2022; the scales as torchao's tensorwise and rowwise recipes have them.
enum class linear_precision : unsigned char { plain, fp8, fp8_rows };
inline constexpr linear_precision fp8 = linear_precision::fp8, fp8_rows = linear_precision::fp8_rows;
inline constexpr std::string_view linear_precision_names[]{"plain", "fp8", "fp8_rows"};

/// LoRA: each target w of (out, in), which `linear` reads, stays as it is, and x w^T gets
/// alpha / rank x a^T b^T beside it, of trained a (rank, in) and b (out, rank). They are named <w>.lora_a,
/// which starts uniform in +-1 / sqrt(in), and <w>.lora_b, which starts with zeros. All other parameters are
/// frozen, but for those in
/// `trained`.
/// Source: Hu et al. 2021; the start of a as PEFT has it, Kaiming-uniform with slope sqrt(5).
struct low_rank_adaptation {
  int rank = 0;
  double alpha = 0;
  parameter_names targets{}, trained{};
  constexpr bool any() const { return *this != low_rank_adaptation{}; }
  constexpr bool operator==(const low_rank_adaptation&) const = default;
};

/// What makes new weights of gradients. AdamW keeps two moments of each weight, SGD one where it has
/// momentum.
enum class optimizer_kind : unsigned char { adamw, sgd };
using enum optimizer_kind;

/// How numbers are rounded to bf16 that the optimizer keeps so.
enum class bf16_rounding : unsigned char { nearest, stochastic };
using enum bf16_rounding;

/// The learning rate over the steps, in pieces: {lr::warm_up(20), lr::constant(300), lr::linear(80, 0)},
/// lr::cosine, lr::wsd.
using runtime::lr_schedule;
namespace lr = runtime::lr;

/// One training run's recipe: optimizer, global-norm clipping, and the learning rate, in the pieces of
/// lr_schedule or else constant or warm-up-cosine.
/// Units: seq in tokens, global_batch in sequences per step; clip 0 turns clipping off; decay_steps 0 keeps
/// lr constant
///        after warm-up, else it falls along a cosine to min_lr in that many steps; with lr 0 a step leaves
///        the weights.
/// With `deterministic` a GPU program gives the same bits each run, at some cost; the host always does.
/// SGD takes lr, weight_decay, clip and the numbers after `optimizer`; its weight decay is added to the
/// gradient. Decay is of parameters with more than one dim. Moments in f32 are in f64 where the program is. A
/// bf16 plan without master_weights has its weights in bf16 alone. Where `reductions` is bf16, gradients are
/// rounded to it for the way over dp, and kept in f32 on both ends. Stochastic rounding follows from
/// rounding_seed, the step, a parameter's name and the element's index in all of it: the same bits in every
/// layout. With `end_of_document`, a token of the vocabulary, sequences are of documents: each ends with that
/// token, and its tokens attend to it alone, from position 0 on; one that began before the sequence begins
/// with it. -1: a sequence is one document. Of `frozen` parameters there is no gradient, and no moments are
/// kept; with `lora` they are all but its own.
/// Errors: RC220, RC233 to RC237, RC239, RC241 to RC249, RC259, from `check_batch`, `check_recipe`,
/// `check_recompute`
///         and `tuning`.
/// Source: AdamW: Loshchilov and Hutter 2019; SGD: Sutskever et al. 2013.
struct training {
  int seq, global_batch;
  rankc::precision precision = bf16;
  double lr = 3e-4, weight_decay = 0.1, clip = 1.0;
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8;
  int warmup_steps = 0, decay_steps = 0;
  double min_lr = 0;
  rankc::lr_schedule lr_schedule = {};
  bool deterministic = false;
  recomputation recompute = {};
  optimizer_kind optimizer = adamw;
  double momentum = 0;
  bool nesterov = false;
  rankc::precision moments = f32;
  rankc::precision reductions = f32;
  linear_precision linears = linear_precision::plain;
  bool master_weights = true;
  bf16_rounding rounding = nearest;
  int rounding_seed = 0;
  parameter_names frozen = {};
  low_rank_adaptation lora = {};
  int end_of_document = -1;
  constexpr bool has_documents() const { return end_of_document != -1; }
  /// The pieces of its learning rate; of warmup_steps and decay_steps a warm-up and a cosine.
  constexpr rankc::lr_schedule schedule_of_lr() const {
    rankc::lr_schedule pieces = lr_schedule;
    if (pieces.any()) return pieces;
    if (warmup_steps > 0) pieces.add(rankc::lr::warm_up(warmup_steps));
    if (decay_steps > 0) pieces.add(rankc::lr::cosine(decay_steps, min_lr));
    return pieces;
  }
  /// The learning rate of step `step`, counted from 1: what the program takes.
  constexpr double learning_rate(long long step) const {
    return runtime::learning_rate(schedule_of_lr(), lr, step);
  }
  /// Whether a parameter of the model is trained, where its layer does not freeze it.
  constexpr bool trains(std::string_view name) const {
    return !frozen.has(name) && (!lora.any() || lora.trained.has(name));
  }
  constexpr bool operator==(const training&) const = default;
};

}  // namespace rankc
