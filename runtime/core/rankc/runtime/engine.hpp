// SPDX-License-Identifier: Apache-2.0
// A running program with the same interface on every target: it takes a batch, runs a step, and reads and
// writes parameters. The trainer and the tests use this interface. host and cuda implement it.
#pragma once
#include <rankc/runtime/failure.hpp>
#include <rankc/runtime/program.hpp>
#include <rankc/runtime/progress.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rankc::runtime {

/// The settings of one training step. `step` counts from 1. `skipped` is the number of earlier steps that
/// changed nothing, because no label counted. AdamW's bias correction leaves them out.
struct step_input {
  double lr, weight_decay, clip, beta1, beta2, eps;
  std::int64_t step;
  double momentum = 0;
  bool nesterov = false;
  std::uint32_t rounding_seed = 0;
  std::int64_t skipped = 0;
};

/// The values of an input that the model declares, for a microbatch of one data-parallel coordinate.
/// Shapes: values (rows, seq, width) of an input with a row for each token, (rows, width) with a row for each
/// sequence, (width) with a row for the step; row-major.
struct named_array {
  std::string_view name;
  std::span<const double> values;
};

/// The result of a step.
/// Units: loss in nats per token (mean over the counted labels of the global batch); grad_norm before
/// clipping.
struct step_output {
  double loss, grad_norm;
  bool is_skipped = false;  // no label counts, so the step has changed nothing
};

/// The output of a step. If no label counts, the squared norm is minus infinity.
inline step_output output_of(double loss, double norm_squared) {
  if (norm_squared == -std::numeric_limits<double>::infinity()) return {loss, 0, true};
  return {loss, std::sqrt(norm_squared)};
}

/// One entry of a rank's trace: an action on a lane that computes, or a message or a collective on another
/// lane. An action on lane 0 begins when its first wait has ended. Its later waits and its collectives are
/// part of it.
/// Units: microseconds since the step began.
struct traced {
  int rank, lane;
  const char* name;  // "1F0", or the message's name
  double begin, end;
};

/// A wait that starts sooner than this after its action begins precedes all computation of the action.
/// Units: microseconds.
inline constexpr double idle_before_wait = 20;

/// The first op of a rank that computed numbers that are not finite from finite ones.
struct origin {
  int rank;
  std::uint64_t op;  // counts from 1, as the step's calls do
  bool is_shared;    // a collective: the contributions of other ranks are not known here
  std::string text;  // "1B3, op 57, linear_dw of layers.2.wo: 3 of 16384 numbers are not finite"
};
struct retraced {
  step_output out;
  std::vector<origin> origins;  // for the ranks of this process
};

enum class region { weights, gradients, first_moment, second_moment };
inline constexpr const char* region_names[]{"weights", "gradients", "first moment", "second moment"};

/// The type in which a region is stored.
constexpr dtype type_of(const description& about, region r) {
  if (r == region::weights) return about.bf16_weights ? dtype::bf16 : about.wide();
  return r != region::gradients && about.bf16_moments ? dtype::bf16 : about.wide();
}

/// True if the weights from element `first` on are not trained and exist only in a bf16 program's working
/// copy.
constexpr bool is_copy_alone(const description& about, const layout& where, region r, std::size_t first) {
  return r == region::weights && about.type == dtype::bf16 && !about.bf16_weights &&
         first >= where.trained_count();
}

/// The tables of a rank.
/// Errors: failure (1) for a rank that does not exist.
inline const layout& layout_of(const description& about, int rank) {
  if (rank >= 0 && rank < about.world())
    return about.layouts[static_cast<std::size_t>(about.ranks[static_cast<std::size_t>(rank)].pp)];
  throw failure(1, "RC5006: rank {} is not one of the {} ranks of this program", rank, about.world());
}

/// The refusal of a training step, or of a region other than the weights, in a program that only evaluates.
inline failure forwards_alone(const description& about) {
  return failure(1, "RC5007: the plan {} has forward passes only; run eval", about.name);
}

/// The refusal to read a rank of another process in the process of rank `own`.
inline failure in_another_process(int rank, int own) {
  return failure(1, "RC5016: rank {} is in another process; the process of rank {} cannot read it", rank,
                 own);
}

/// The number of moments that the optimizer must keep for a region to exist.
constexpr int moments_for(region r) {
  if (r == region::second_moment) return 2;
  return r == region::first_moment ? 1 : 0;
}

/// The offset of elements [first, first + count) of a region.
/// Errors: failure (1) for elements that the rank does not hold.
inline at place_of(const description& about, int rank, region r, std::size_t first, std::size_t count) {
  const layout& where = layout_of(about, rank);
  if (!about.trains && r != region::weights) throw forwards_alone(about);
  if (moments_for(r) > about.moments)
    throw failure(1, "RC5008: the optimizer of the plan {} does not keep the {}", about.name,
                  region_names[static_cast<int>(r)]);
  const std::size_t held = r == region::weights ? where.parameter_count : where.trained_count();
  if (first > held || count > held - first)
    throw failure(1, "RC5009: rank {} does not have the elements {} to {}; the region has {}", rank, first,
                  first + count, held);
  if (is_copy_alone(about, where, r, first)) return where.working_copy + first * size_of(dtype::bf16);
  const at starts[] = {where.weights, where.gradients, where.first_moment, where.second_moment};
  return starts[static_cast<std::size_t>(r)] + first * size_of(type_of(about, r));
}

/// The type of a rank's elements from `first` on.
inline dtype type_at(const description& about, int rank, region r, std::size_t first) {
  const layout& where = layout_of(about, rank);
  return is_copy_alone(about, where, r, first) ? dtype::bf16 : type_of(about, r);
}

/// The labels that a program takes, as part of an error text.
inline std::string legal_labels(const description& about) {
  std::string text = "a label is a token, 0 to " + std::to_string(about.vocab_used - 1);
  if (about.ignores_labels()) return text + ", or the ignored label " + std::to_string(about.ignored_label);
  return text + "; to leave labels out of the loss, give the plan's training an ignored_label, as -100";
}

/// Refuses a microbatch that does not exist.
/// Errors: failure (1).
inline void check_batch(const description& about, int dp, int microbatch) {
  if (dp >= 0 && dp < about.dp && microbatch >= 0 && microbatch < about.microbatches) return;
  throw failure(
      1, "RC5010: dp {}, microbatch {} does not exist; this program has dp below {} and microbatch below {}",
      dp, microbatch, about.dp, about.microbatches);
}

/// The first rank that has the complete loss and gradient norm of a step.
inline int reporter_of(const description& about) {
  int rank = 0;
  while (about.ranks[static_cast<std::size_t>(rank)].pp != about.loss_at()) ++rank;
  return rank;
}

/// The offset of the logits of a token.
/// Errors: failure (1) if the rank does not have them.
inline at place_of_logits(const description& about, int rank, std::size_t token) {
  const logits_place& l = layout_of(about, rank).logits;
  if (token < static_cast<std::size_t>(l.rows))
    return l.where + token * static_cast<std::size_t>(l.stride) * size_of(about.type);
  throw failure(1, "RC5011: rank {} does not have the logits of token {}; it has those of {} tokens", rank,
                token, l.rows);
}

/// The offset of a microbatch's router statistics.
/// Errors: failure (1) if the rank does not have them.
inline at place_of_routers(const description& about, int rank, int microbatch) {
  const routers_place& r = layout_of(about, rank).routers;
  const auto size =
      static_cast<std::size_t>(r.rows) * static_cast<std::size_t>(r.experts) * size_of(about.wide());
  if (r.rows > 0 && microbatch >= 0 && microbatch < about.microbatches)
    return r.where + static_cast<std::size_t>(microbatch) * size;
  throw failure(1, "RC5012: rank {} does not keep the router statistics of microbatch {}", rank, microbatch);
}

class engine {
 public:
  virtual ~engine() = default;
  virtual const description& about() const = 0;

  /// Sets microbatch `microbatch` of data-parallel coordinate `dp`.
  /// Shapes: tokens and targets: (rows, seq), row-major.
  virtual void set_batch(int dp, int microbatch, const std::int32_t* tokens, const std::int32_t* targets) = 0;

  /// Sets the document starts of a microbatch, after its set_batch, which has found them by the end token. A
  /// program without documents ignores them.
  /// Shapes: starts (rows, seq): for each token the position at which its document begins.
  /// Errors: as check_batch.
  virtual void set_document_starts(int dp, int microbatch, const std::int32_t* starts) = 0;

  /// Sets the inputs that the model declares, for one microbatch. A program with such inputs needs all of
  /// them before a step.
  /// Errors: as check_inputs.
  virtual void set_inputs(int dp, int microbatch, std::span<const named_array>) = 0;

  /// Runs one training step on all ranks.
  /// Errors: failure (70) if a rank fails; no rank is left waiting. Failure (1) if the program only
  /// evaluates.
  virtual step_output step(const step_input&) = 0;

  /// Runs the same step, timed. `into` receives the trace of each rank, in the order of issue.
  virtual step_output traced_step(const step_input&, std::vector<traced>& into) = 0;

  /// Runs the same step, timed call by call. `into` receives each lane's calls; the name is the text of the
  /// call's type (call_names.hpp). The host times only lanes that compute.
  /// Errors: failure (1) if the target does not time calls.
  virtual step_output step_by_calls(const step_input&, std::vector<traced>& into);

  /// Runs a step again whose norm was not finite, so that no rank applied it, and examines the result of
  /// every op. Empty if the target cannot do this. All processes call it. Afterwards the contents of the
  /// ranks are not usable.
  virtual std::optional<retraced> retrace(const step_input&) { return std::nullopt; }

  /// Runs the forward program on all ranks. Parameters and moments are unchanged.
  virtual double evaluate() = 0;

  /// True if a rank runs in this process, so that it can be read.
  virtual bool holds(int /*rank*/) const { return true; }

  /// Copies `count` elements of a region of one rank to or from host memory, from element `first` on. Several
  /// threads may write different elements at the same time, and may read while none writes or steps. Writing
  /// to a rank of another process does nothing.
  /// Errors: failure (1) for elements that the rank does not hold, or for reading a rank of another process.
  virtual void read(int rank, region, std::size_t first, std::size_t count, double* to) = 0;
  virtual void write(int rank, region, std::size_t first, std::size_t count, const double* from) = 0;

  /// Copies the logits of a token that `evaluate` has computed, for the rank's part of the vocabulary.
  /// Shapes: to (columns).
  /// Errors: failure (1) if the rank does not have them.
  virtual void logits(int rank, std::size_t token, double* to);

  /// Copies a microbatch's router statistics of the last step or evaluation.
  /// Shapes: to (rows, experts) of routers_place.
  /// Errors: failure (1) if the rank does not have them.
  virtual void routers(int rank, int microbatch, double* to);

  /// Each rank of this process with its current position. Another thread may call it. Empty if the target
  /// does not report positions.
  virtual std::vector<std::pair<int, rank_position>> look() { return {}; }

  /// The size of the arena that the target has allocated for a rank. It equals the plan's figure.
  /// Units: bytes.
  virtual std::size_t arena_bytes(int rank) const = 0;
};

inline step_output engine::step_by_calls(const step_input&, std::vector<traced>&) {
  throw failure(1, "RC5013: this engine does not time calls");
}
inline void engine::logits(int rank, std::size_t token, double*) {
  place_of_logits(about(), rank, token);
  throw failure(1, "RC5014: this engine does not read logits");
}
inline void engine::routers(int rank, int microbatch, double*) {
  place_of_routers(about(), rank, microbatch);
  throw failure(1, "RC5015: this engine does not read router statistics");
}

}  // namespace rankc::runtime
