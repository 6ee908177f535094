// SPDX-License-Identifier: Apache-2.0
// The facts that a generated program states about itself, for every target: its ranks, communicators,
// parameters and buffers, as constant tables. The trainer, the tests and embedding applications read them.
// The step itself is one function per pipeline rank (host/rank.hpp, cuda/rank.hpp).
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

/// The version that generated text asserts, so that old text does not compile against a new runtime.
inline constexpr int interface_version = 12;

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

/// A lane of a rank: a stream (on the host a thread or a queue) with its own communicators. A lane that
/// `computes` has its own workspace. A lane that `rounds` sends its reductions in bf16 and has a buffer for
/// the rounded numbers. Work on a lane runs in the order in which it is enqueued. Lane 0 computes.
struct lane_row {
  const char* name;
  bool computes, rounds = false;
};

/// The kind of a communicator: a group along an axis, the holders of the same parameters, or a pair whose
/// first rank sends messages to the second.
enum class over { tp, dp, pp, tied, peer, shard, cp, ulysses, ep, efsdp, etp };
inline constexpr const char* over_names[]{"tp", "dp",      "pp", "tied",  "peer", "shard",
                                          "cp", "ulysses", "ep", "efsdp", "etp"};

/// A communicator of one of a rank's lanes. No two lanes of a rank share a communicator, and a lane has at
/// most one of each kind.
/// Units: `lane` is an index into layout::lanes, `communicator` into description::communicators.
struct lane_communicator {
  int lane;
  runtime::over over;
  int communicator;
};

/// A communication site of the plan. Both sides use the same site. An error for a mismatch names it.
struct message {
  int index;
  const char* name;
};

enum class reduction { sum, max };

/// The direction in which the members of a ring send. The next member of the last is the first.
enum class ring_way { next, back };

/// An event of a rank program, numbered within its pipeline rank.
struct event {
  int index;
};

/// The initial values of a parameter. `uniform` is uniform(-a, a) with a = std * sqrt(3), seeded by the hash
/// of its name.
enum class fill { zeros, ones, uniform };

/// One parameter as a pipeline rank holds it. Sizes are those of its tp shard. If weights are sharded over n
/// ranks, rank i of them keeps rows i * k .. i * k + k - 1 with k = ceil(rows / n). Rows past the last are
/// padding, zeros.
/// Shapes: rows x cols, row-major; a vector has cols = 1.
struct parameter {
  const char* name;
  int rows, cols;
  // -1: replicated over tp; 0 or 1: this dim is sharded over tp, in rank order (for experts over etp)
  int shard_dim;
  std::size_t element;  // offset in elements from the start of each region (weights, gradients, moments)
  fill init;
  double std;
  bool matrix;  // it has two dims: its weights decay, and checkpoints save two dims
  bool copy;    // the second holder of a tied weight: same values, but not in the norm and not in checkpoints
  bool experts = false;  // rows: the experts of an ep rank, or their columns on an etp rank
};

/// The type in place of a moment that the optimizer does not have.
struct no_moment {};

/// Contiguous elements of the regions that the optimizer updates by the same rule.
struct range {
  std::size_t first, count;
  bool decay;
  load_balance balances = {};  // for biases of expert scores: they have no moments and follow this rule alone
};

/// A sharded tensor. Every rank of the group keeps the same number of elements. The full tensor starts at
/// `gathered` in the region of gathered tensors. This rank's shard starts at `kept` in the rank's own region.
/// A sum that is added to the shard arrives at `arriving`.
/// Units: elements.
struct shard_range {
  std::size_t gathered, kept, count;  // count: this rank's elements
  std::size_t arriving = 0;
};

/// A cosine/sine table that the runtime fills at install, for `positions` positions: those of a sequence that
/// the rank holds.
/// Shapes: (positions, dim / 2) cosines, then as many sines.
/// Source: RoFormer (Su et al. 2021), half-split form.
struct rope_table {
  at where;
  int positions, dim;
  double theta;
  rope_scaling scaling{};
};

/// The logits that the forward program leaves in the arena: one microbatch, this rank's part of the
/// vocabulary, in the type of activations. rows 0: none.
/// Units: `stride` in elements from one row to the next.
struct logits_place {
  at where;
  int rows = 0, columns = 0, stride = 0, microbatch = 0;
};

/// The router statistics that a step leaves for each microbatch, summed over all ranks. Each layer with a
/// router has three rows with one number per expert: how often each expert was chosen, the sums of its
/// scores, and a row that begins with the sum of squared log-sum-exps of the logits. If experts have a
/// capacity limit, that row's second number counts dropped choices. The type is that of sums. rows 0: none.
struct routers_place {
  at where;
  int rows = 0, experts = 0;
  double balance = 0, z = 0;   // coefficients of the router losses that a step's loss contains
  bool of_each_layer = false;  // the plan's balance loss is computed for each layer
  bool limited = false;        // experts have a capacity limit
  bool fails = false;          // a step with dropped choices is not applied
};

/// The resource that bounds a call: the GPU's compute (`product`, `attention`), its memory, or links.
enum class call_kind { product, attention, pass, optimizer, communication };

/// The calls of a step with one name, and their total work.
/// Units: bytes that are read and written, or that a communication sends; milliseconds are a lower bound on
/// the plan's GPU, 0 if unknown.
struct call_row {
  const char* name;  // "linear_dw"
  call_kind kind;
  int count;
  double operations, bytes, least_ms;
};

/// The type of an input's numbers: the type of activations, f32 (f64 in an f64 program), or int32.
enum class input_type { real, wide, index };
/// The rows of an input: one for each token, for each sequence, or one for the step.
enum class input_rows { token, sequence, step };

/// An input of a step that the model declares.
/// Shapes: where (microbatches, rows of the rank, width).
struct input_row {
  const char* name;
  at where;
  int width = 1;  // numbers in a row
  input_type type = input_type::wide;
  input_rows rows = input_rows::token;
  bool whole_sequences = false;  // the rank holds all tokens of its sequences, not only its own
  int below = 0;                 // indices are at least 0 and below this; 0: any
};

/// The arena of the ranks of one pipeline coordinate, and its contents.
/// Units: bytes for `at` and `arena_bytes`; elements for `parameter_count`.
struct layout {
  std::size_t arena_bytes;
  at weights, gradients, first_moment, second_moment;
  at working_copy = {};          // bf16 programs: the rounded weights that forward and backward read
  std::size_t parameter_count;   // elements of each of these regions, padding included
  std::size_t frozen_count = 0;  // the last of these: not trained, in the working copy or else the weights
  std::span<const parameter> parameters;
  std::span<const rope_table> ropes;
  at tokens, targets;  // int32 (microbatches, tokens of a microbatch); valid if the flags below are set
  bool reads_tokens, reads_targets;
  at loss, norm;  // one element each; the loss is valid on the rank of the last stage
  int events;     // number of events the step uses
  std::span<const lane_row> lanes;
  at starts = {};  // int32 (microbatches, rows * seq): for each token, the position of its document's start
  bool reads_starts = false;
  bool has_loss = false;                   // the rank ends a step with the loss, but reads no targets
  std::span<const input_row> inputs = {};  // the inputs that the ranks read
  logits_place logits = {};
  routers_place routers = {};
  std::span<const call_row> calls =
      {};  // in a training step, or in an evaluation if the program does not train

  constexpr std::size_t trained_count() const { return parameter_count - frozen_count; }
};

/// One rank: its coordinates, and the communicators of its lanes. If weights are sharded, neighbours of `dp`
/// share them.
struct rank_row {
  int pp, dp, tp;
  std::span<const lane_communicator> links;
  int cp = 0;
  int ep = 0;  // if it is a separate axis
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

/// Hyperparameters of the plan's recipe. The command line may replace the first six.
struct recipe {
  double lr, weight_decay, clip;  // clip 0: no clipping
  double beta1, beta2, eps;
  int warmup_steps, decay_steps;  // decay_steps 0: constant learning rate after warm-up
  double min_lr;
  double momentum = 0;  // for SGD
  bool nesterov = false;
  std::uint32_t rounding_seed = 0;  // for stochastic rounding
  lr_schedule schedule = {};        // if it has pieces, it replaces warmup_steps, decay_steps and min_lr
};

/// The cost model's prediction for an action. "0F" is the forward of a microbatch in stage 0. "STEP" is work
/// that each rank does once.
/// Units: milliseconds.
struct predicted_action {
  const char* name;
  double ms;
};
struct prediction {
  double step_ms = 0;  // 0: the cost model does not know the GPUs
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
  int cp = 1;      // ranks that share each sequence
  int shards = 1;  // neighbouring ranks of dp, or of dp and cp, that each keep a shard of each weight
  bool cp_shares_weights = false;  // shards are over dp and cp; else cp ranks hold the same shards
  int ep = 1;                      // degree of expert parallelism, over these ranks and tp
  int etp = 1;                     // neighbouring ranks that hold columns of the same experts
  // One copy of the experts is sharded over all ranks of a stage; else over the ranks that share weights.
  bool experts_over_replicas = false;
  bool independent_experts = false;  // ep is a separate axis, whose ranks have the same tokens
  int end_of_document = -1;          // the token that ends a document; -1: each sequence is one document
  std::int32_t ignored_label = every_label_counts;  // the loss ignores it
  bool ignore_across_documents = false;             // the loss ignores the label of a document's last token
  bool token_weights = false;                       // labels have weights, which are an input of the step
  int microbatches, rows, seq, vocab;               // rows: sequences per microbatch and data-parallel rank
  int vocab_used;  // tokens are below this; the rest of the vocabulary is padding
  double flops_per_token;
  double peak_flops;  // one rank's peak, for MFU; 0: unknown
  prediction predicted{};
  bool deterministic = false;  // no kernel changes the order of its sums from run to run
  double lora_scale = 0;  // factor of <w>.lora_b times <w>.lora_a, which is added to a weight w; 0: no LoRA
  bool trains = true;     // false: the program only evaluates; its layouts have weights, and no other region
  int moments = 2;        // kept for each weight: 2 for AdamW; 1 for SGD with momentum, 0 without
  bool bf16_moments = false;  // else moments have the type of gradients
  bool bf16_weights = false;  // bf16 programs: layers read the weights themselves, without a working copy
  recipe train;
  const char* note = "";            // a note for the user, printed before the program runs
  std::span<const layout> layouts;  // one per pipeline coordinate
  std::span<const rank_row> ranks;
  std::span<const communicator> communicators;
  const char* text;                          // the output of `describe`
  const char* json;                          // the output of `describe --json`
  std::span<const proven_step> proven = {};  // empty: no generator has proven the program
  constexpr int world() const { return pp * dp * cp * tp * (independent_experts ? ep : 1); }
  /// The tokens of a microbatch of one replica, which its cp ranks share.
  constexpr std::size_t tokens_of_microbatch() const {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(seq);
  }
  /// shard_of is the shard of the weights that a rank keeps. is_first_holder is true for the first rank that
  /// keeps it.
  constexpr int shard_of(const rank_row& r) const { return place_among_holders(r) % shards; }
  constexpr bool is_first_holder(const rank_row& r) const { return is_of_first_replica(r) && r.ep == 0; }
  constexpr bool is_first_with_experts(const rank_row& r) const {
    return experts_over_replicas || is_of_first_replica(r);
  }
  /// The experts that a rank holds, the columns of them, and the shard of these. Ranks of other copies hold
  /// the same.
  constexpr int ep_of(const rank_row& r) const {
    return independent_experts ? r.ep : place_among_experts(r) / etp % ep;
  }
  constexpr int etp_of(const rank_row& r) const { return place_among_experts(r) % etp; }
  constexpr int expert_shard_of(const rank_row& r) const { return place_among_experts(r) / expert_ranks(); }
  constexpr int expert_shards() const {
    return (experts_over_replicas ? dp * cp : shards) * tp / expert_ranks();
  }
  /// The number of parts into which the columns of a parameter are sharded, and the rank's part.
  constexpr int parts_of_columns(const parameter& p) const {
    if (p.shard_dim != 1) return 1;
    return p.experts ? etp : tp;
  }
  constexpr int part_of_columns(const parameter& p, const rank_row& r) const {
    if (p.shard_dim != 1) return 0;
    return p.experts ? etp_of(r) : r.tp;
  }
  /// The part of each sequence that a rank holds.
  constexpr chunks chunks_of(const rank_row& r) const { return {seq, cp, r.cp}; }
  /// The positions for which the rank's table has angles.
  constexpr chunks chunks_of_table(const rope_table& t, const rank_row& r) const {
    return {t.positions * cp, cp, r.cp};
  }
  /// The type of gradients and of other sums.
  constexpr dtype wide() const { return type == dtype::bf16 ? dtype::f32 : type; }
  /// The pipeline coordinate that has the loss: the last that reads targets or, without targets, the last
  /// that has the loss. Each rank with this coordinate has the complete loss.
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
  /// Whether the label of a token is that of the next document, which the loss leaves out.
  constexpr bool ignores_label_of(std::int32_t token) const {
    return ignore_across_documents && token == end_of_document;
  }

 private:
  constexpr bool is_of_first_replica(const rank_row& r) const {
    return place_among_holders(r) < shards && (cp_shares_weights || r.cp == 0);
  }
  /// The number of ranks that together hold one shard of all experts.
  constexpr int expert_ranks() const { return independent_experts ? etp : ep * etp; }
  constexpr int place_among_holders(const rank_row& r) const {
    return cp_shares_weights ? r.dp * cp + r.cp : r.dp;
  }
  constexpr int place_among_experts(const rank_row& r) const {
    return (experts_over_replicas ? r.dp * cp + r.cp : shard_of(r)) * tp + r.tp;
  }
};

}  // namespace rankc::runtime
