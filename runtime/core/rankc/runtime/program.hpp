// SPDX-License-Identifier: Apache-2.0
// What a generated program says about itself, for every target: its ranks, communicators, parameters and
// buffers, as constant tables. The trainer, the tests and an embedding application read these; the step
// itself is a function per pipeline rank (host/rank.hpp, cuda/rank.hpp).
#pragma once
#include <rankc/runtime/chunks.hpp>
#include <rankc/contract/load_balance.hpp>
#include <rankc/contract/lr_schedule.hpp>
#include <rankc/runtime/proven.hpp>
#include <rankc/contract/rope_scaling.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace rankc::runtime {

/// The version that generated text asserts, so that old output and a new runtime cannot meet.
inline constexpr int interface_version = 10;

/// A byte offset into a rank's arena.
struct at {
  std::size_t byte = 0;
  constexpr at operator+(std::size_t bytes) const { return {byte + bytes}; }
};

enum class dtype { f32, f64, bf16 };
constexpr std::size_t size_of(dtype t) {
  if (t == dtype::f64) return 8;
  return t == dtype::f32 ? 4 : 2;
}

/// A lane of a rank: one stream (on the host a thread or a queue), with communicators of its own and, where
/// it computes, a workspace of its own; where it `rounds` what it sums, to send it in bf16, memory for that.
/// What is put on a lane runs in that order. Lane 0 computes.
struct lane_row {
  const char* name;
  bool computes, rounds = false;
};

/// What the ranks of a communicator are to each other: the groups of an axis, holders of the same parameters,
/// or a pair of which the first sends messages to the second.
enum class over { tp, dp, pp, tied, peer, shard, cp, ulysses, ep, efsdp, etp };
inline constexpr const char* over_names[]{"tp", "dp",      "pp", "tied",  "peer", "shard",
                                          "cp", "ulysses", "ep", "efsdp", "etp"};

/// A communicator of one of a rank's lanes. Of a rank's lanes one alone has it, and a lane has one of each
/// kind at most.
/// Units: `lane` is an index into layout::lanes, `communicator` into description::communicators.
struct lane_communicator {
  int lane;
  runtime::over over;
  int communicator;
};

/// A communication site of the plan; both sides carry it, and a mismatch is refused by name.
struct message {
  int index;
  const char* name;
};

enum class reduction { sum, max };

/// Where members of a ring hand on what they have: the last one's next is the first.
enum class ring_way { next, back };

/// An event of a rank program, numbered within its pipeline rank.
struct event {
  int index;
};

/// How a parameter starts. `uniform` is uniform(-a, a) with a = std * sqrt(3), by the hash of its name.
enum class fill { zeros, ones, uniform };

/// One parameter as a pipeline rank reads it: sizes are those of its part over tp. Where weights are sharded,
/// rank i of the n that share them keeps rows i * k .. i * k + k - 1 with k = ceil(rows / n); rows past the
/// last are padding, zeros.
/// Shapes: rows x cols, row-major; a vector has cols = 1.
struct parameter {
  const char* name;
  int rows, cols;
  // -1: whole on every tp rank; 0 or 1: this dim is split over tp, in rank order; of experts over etp
  int shard_dim;
  std::size_t element;  // offset in elements from the start of each region (weights, gradients, moments)
  fill init;
  double std;
  bool matrix;  // two dims: takes weight decay, and saved with two dims
  bool copy;    // the second holder of a tied weight: same values, neither counted in the norm nor saved
  bool experts =
      false;  // rows: those of the experts that a rank of ep has, whole, or their columns of a rank of etp
};

/// The moment of an optimizer that has none.
struct no_moment {};

/// Neighbouring elements of the regions that the optimizer treats alike.
struct range {
  std::size_t first, count;
  bool decay;
  load_balance balances = {};  // biases of experts' scores: they have no moments, and are moved by this alone
};

/// A tensor of which every rank of a group keeps as many elements: all of it begins at `gathered` in the
/// region where it is gathered, and what this rank keeps at `kept` in the rank's own; a sum that is to be
/// added to that arrives at `arriving`.
/// Units: elements.
struct shard_range {
  std::size_t gathered, kept, count;  // count: of the rank
  std::size_t arriving = 0;
};

/// A cosine/sine table that the runtime fills at install: of as many positions, those that the rank has of a
/// sequence.
/// Shapes: (positions, dim / 2) cosines, then as many sines.
/// Source: RoFormer (Su et al. 2021), half-split form.
struct rope_table {
  at where;
  int positions, dim;
  double theta;
  rope_scaling scaling{};
};

/// What the forward program leaves in the arena: the logits of a microbatch, of this rank's part of the
/// vocabulary, in the type of activations. Units: elements from one row to the next; rows 0: none.
struct logits_place {
  at where;
  int rows = 0, columns = 0, stride = 0, microbatch = 0;
};

/// What a step leaves of each microbatch's routers, on all ranks together: of each layer that has one three
/// rows of so many experts: how often each was chosen, the sums of its scores, and a row that begins with the
/// sum of squares of logits and, where experts take no more than so many picks, the number of those that were
/// dropped. In the type of sums; rows 0: none.
struct routers_place {
  at where;
  int rows = 0, experts = 0;
  double balance = 0, z = 0;   // coefficients of the router losses that a step's loss contains
  bool of_each_layer = false;  // the plan's balance is
  bool limited = false;        // experts take no more than so many picks
  bool fails = false;          // a step that has more is not applied
};

/// What bounds a call: the GPU's operations, its memory, or links.
enum class call_kind { product, attention, pass, optimizer, communication };

/// The calls of a step by one name, and what all of them do.
/// Units: bytes that pass through memory, or that a communication sends; milliseconds that the plan's GPU
/// takes at least, 0 where it is not known.
struct call_row {
  const char* name;  // "linear_dw"
  call_kind kind;
  int count;
  double operations, bytes, least_ms;
};

/// The type of an input's numbers: that of activations, f32 (f64 in a program of f64), or int32.
enum class input_type { real, wide, index };
/// An input has a row for each token, for each sequence, or for the step.
enum class input_rows { token, sequence, step };

/// An input of a step that the model declares.
/// Shapes: where (microbatches, rows of the rank, width).
struct input_row {
  const char* name;
  at where;
  int width = 1;  // numbers of a row
  input_type type = input_type::wide;
  input_rows rows = input_rows::token;
  bool whole_sequences = false;  // the rank has all tokens of its sequences, not only its own
  int below = 0;                 // indices are at least 0 and below this; 0: any
};

/// The arena of the ranks of one pipeline coordinate, and what lies in it.
/// Units: bytes for `at` and `arena_bytes`; elements for `parameter_count`.
struct layout {
  std::size_t arena_bytes;
  at weights, gradients, first_moment, second_moment;
  at working_copy = {};         // bf16 programs: the weights as forward and backward read them, rounded
  std::size_t parameter_count;  // elements of each of these regions, padding included
  std::size_t frozen_count =
      0;  // of these the last, which are not trained: they lie in the working copy alone, where there is
          // one, else in the weights alone
  std::span<const parameter> parameters;
  std::span<const rope_table> ropes;
  at tokens, targets;  // int32 (microbatches, tokens of a microbatch); only where the flags below say so
  bool reads_tokens, reads_targets;
  at loss, norm;  // one element each; the loss counts on the rank of the last stage
  int events;     // number of events the step uses
  std::span<const lane_row> lanes;
  at starts = {};  // int32 (microbatches, rows * seq): of each token the position that its document begins at
  bool reads_starts = false;
  bool has_loss = false;                   // the rank ends a step with the loss, and reads no targets
  std::span<const input_row> inputs = {};  // those that the ranks read
  logits_place logits = {};
  routers_place routers = {};
  std::span<const call_row> calls =
      {};  // of a training step; where the program does not train, of an evaluation

  constexpr std::size_t trained_count() const { return parameter_count - frozen_count; }
};

/// One rank: its coordinates, and the communicators of its lanes. Of `dp` neighbours share weights, if any
/// do.
struct rank_row {
  int pp, dp, tp;
  std::span<const lane_communicator> links;
  int cp = 0;
  int ep = 0;  // where it is an axis of its own
  /// The coordinate on an axis.
  constexpr int index_in(over axis) const {
    if (axis == over::tp) return tp;
    if (axis == over::dp) return dp;
    if (axis == over::cp) return cp;
    return axis == over::ep ? ep : pp;
  }
};

struct communicator {
  const char* name;
  std::span<const int> ranks;
};

/// Hyperparameters of the plan's recipe; the command line may replace the first six.
struct recipe {
  double lr, weight_decay, clip;  // clip 0: no clipping
  double beta1, beta2, eps;
  int warmup_steps, decay_steps;  // decay_steps 0: constant learning rate after warm-up
  double min_lr;
  double momentum = 0;  // of SGD
  bool nesterov = false;
  std::uint32_t rounding_seed = 0;  // of what is rounded stochastically
  lr_schedule schedule = {};  // in the place of warmup_steps, decay_steps and min_lr, where it has pieces
};

/// What the cost model says of a step. Units: milliseconds. `actions`: of each microbatch, "0F" the forward
/// of stage 0, and of what each rank does once, "STEP".
struct predicted_action {
  const char* name;
  double ms;
};
struct prediction {
  double step_ms = 0;  // 0: it does not know the GPUs
  std::span<const predicted_action> actions{};
  constexpr bool is_known() const { return step_ms > 0; }
};

/// The ignored_label of a program that ignores no label.
inline constexpr std::int32_t every_label_counts = std::numeric_limits<std::int32_t>::min();

struct description {
  int interface_version;
  const char* name;
  std::uint64_t plan_hash;
  dtype type;
  int pp, dp, tp;
  int cp = 1;      // ranks that share out each sequence
  int shards = 1;  // neighbouring ranks of dp, or of dp and cp, that keep a shard of each weight
  bool cp_shares_weights = false;  // they are of dp and cp; else each rank of cp has what the others have
  int ep = 1;                      // ranks of these, and of tp, that experts are spread over
  int etp = 1;                     // neighbouring ranks that have columns of the same
  // one copy of the experts is spread over all ranks of a stage; else over those that share weights
  bool experts_over_replicas = false;
  bool independent_experts = false;                 // ep is a separate axis, whose ranks have the same tokens
  int end_of_document = -1;                         // the token that ends one; -1: a sequence is one
  std::int32_t ignored_label = every_label_counts;  // the loss leaves it out
  int microbatches, rows, seq, vocab;               // rows: sequences per microbatch and data-parallel rank
  int vocab_used;  // tokens are below this; the rest of the vocabulary is padding
  double flops_per_token;
  double peak_flops;  // of one rank, for mfu; 0: unknown
  prediction predicted{};
  bool deterministic = false;  // no kernel whose sums change their order from run to run
  double lora_scale =
      0;               // of what is beside a weight w, trained as <w>.lora_b times <w>.lora_a; 0: nothing is
  bool trains = true;  // false: forwards alone; the layouts have weights, and no other region
  int moments = 2;     // that are kept of each weight: AdamW's two; SGD's momentum, or none
  bool bf16_moments = false;  // else they are kept in the type of gradients
  bool bf16_weights =
      false;  // bf16 programs: the weights are what layers read, with no working copy beside them
  recipe train;
  const char* note = "";            // what a user is to know of it before it runs
  std::span<const layout> layouts;  // one per pipeline coordinate
  std::span<const rank_row> ranks;
  std::span<const communicator> communicators;
  const char* text;                          // what `describe` prints
  const char* json;                          // what `describe --json` prints
  std::span<const proven_step> proven = {};  // none: a program that no generator has proven
  constexpr int world() const { return pp * dp * cp * tp * (independent_experts ? ep : 1); }
  /// Of a replica: its ranks of cp share them out.
  constexpr std::size_t tokens_of_microbatch() const {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(seq);
  }
  /// Which shard of the weights a rank keeps, and whether it is the first to keep it.
  constexpr int shard_of(const rank_row& r) const { return place_among_holders(r) % shards; }
  constexpr bool is_first_holder(const rank_row& r) const { return is_of_first_replica(r) && r.ep == 0; }
  constexpr bool is_first_with_experts(const rank_row& r) const {
    return experts_over_replicas || is_of_first_replica(r);
  }
  /// Which of the experts a rank has, which columns, and which shard of these. Ranks of other copies have the
  /// same.
  constexpr int ep_of(const rank_row& r) const {
    return independent_experts ? r.ep : place_among_experts(r) / etp % ep;
  }
  constexpr int etp_of(const rank_row& r) const { return place_among_experts(r) % etp; }
  constexpr int expert_shard_of(const rank_row& r) const { return place_among_experts(r) / expert_ranks(); }
  constexpr int expert_shards() const {
    return (experts_over_replicas ? dp * cp : shards) * tp / expert_ranks();
  }
  /// Into how many parts the columns of a parameter are split, and which a rank has.
  constexpr int parts_of_columns(const parameter& p) const {
    if (p.shard_dim != 1) return 1;
    return p.experts ? etp : tp;
  }
  constexpr int part_of_columns(const parameter& p, const rank_row& r) const {
    if (p.shard_dim != 1) return 0;
    return p.experts ? etp_of(r) : r.tp;
  }
  /// What a rank has of each sequence.
  constexpr chunks chunks_of(const rank_row& r) const { return {seq, cp, r.cp}; }
  /// The positions of which it has the angles.
  constexpr chunks chunks_of_table(const rope_table& t, const rank_row& r) const {
    return {t.positions * cp, cp, r.cp};
  }
  /// The type of gradients and of other sums.
  constexpr dtype wide() const { return type == dtype::bf16 ? dtype::f32 : type; }
  /// The pipeline coordinate that has the loss: the last that reads targets, or, without targets, the last
  /// that has the loss. Each such rank has the whole loss.
  constexpr int loss_at() const {
    int found = 0;
    bool reads_targets = false;
    for (int pp_of = 0; pp_of < pp; ++pp_of) {
      const layout& l = layouts[static_cast<std::size_t>(pp_of)];
      if (l.reads_targets || (l.has_loss && !reads_targets)) found = pp_of;
      reads_targets |= l.reads_targets;
    }
    return found;
  }
  constexpr int global_batch() const { return microbatches * rows * dp; }
  constexpr bool ignores_labels() const { return ignored_label != every_label_counts; }
  constexpr bool is_token(std::int32_t t) const { return t >= 0 && t < vocab_used; }
  constexpr bool is_label(std::int32_t t) const {
    return is_token(t) || (ignores_labels() && t == ignored_label);
  }

 private:
  constexpr bool is_of_first_replica(const rank_row& r) const {
    return place_among_holders(r) < shards && (cp_shares_weights || r.cp == 0);
  }
  /// Of the ranks that experts are spread over, those that have one shard of all.
  constexpr int expert_ranks() const { return independent_experts ? etp : ep * etp; }
  constexpr int place_among_holders(const rank_row& r) const {
    return cp_shares_weights ? r.dp * cp + r.cp : r.dp;
  }
  constexpr int place_among_experts(const rank_row& r) const {
    return (experts_over_replicas ? r.dp * cp + r.cp : shard_of(r)) * tp + r.tp;
  }
};

}  // namespace rankc::runtime
