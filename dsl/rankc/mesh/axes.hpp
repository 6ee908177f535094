// SPDX-License-Identifier: Apache-2.0
// The axes of a mesh: what is true of one stands in its row of `axis_rows`, and nothing else lists axes. A
// new axis is a value of `axis`, its row and, where users declare it, a member of `parallel_dims`;
// `axes_check.hpp` judges them.
#pragma once
#include <iterator>
#include <string_view>

namespace rankc {

/// Stands for the one degree that the others determine.
inline constexpr int infer = -1;

/// Where the ranks of expert parallelism come from.
///   folded                the ranks of one replica of the dense layers: ep * etp divides dp_shard * cp * tp
///   folded_over_replicas  those of all replicas: ep * etp divides dp_replicate * dp_shard * cp * tp
///   independent           an axis of the world of its own; the dense layers are computed ep times, on the
///                         same data
enum class expert_layout : unsigned char { folded, folded_over_replicas, independent };
inline constexpr std::string_view expert_layout_names[]{"folded", "folded_over_replicas", "independent"};

/// Whether the ranks of a cp group shard the weights among them or each hold them.
enum class cp_weights : unsigned char { shard, replicate };
inline constexpr std::string_view cp_weights_names[]{"shard", "replicate"};

/// How the ranks of a ring, those of cp that do not exchange heads, attend to each other's keys and values:
/// gathered before attention, or handed on from rank to rank, a rank's at a time.
enum class cp_attention : unsigned char { gather, ring };
inline constexpr std::string_view cp_attention_names[]{"gather", "ring"};

/// When a rank that shares weights lets go of those that it has gathered.
///   after_layer  when a layer has read them, while the next one's are gathered (FSDP); each microbatch's
///                gradients are dealt out
///   after_stage  when the rank turns to others of its stages, by UNSHARD and RESHARD; each gradient is dealt
///                out once
///   after_step   at the end: each weight is gathered once and each gradient dealt out once (ZeRO with whole
///                weights in a step)
///   standard     after_layer on one pipeline rank; after_step on several, whose microbatches would gather
///                them anew
enum class reshard : unsigned char { standard, after_layer, after_stage, after_step };

/// The degree of each axis. world = pp * dp_replicate * dp_shard * cp * tp, times ep where experts are
/// independent; cp = ring * ulysses.
/// Errors: RC101 to RC109 and RC114, from `check_dims`.
struct parallel_dims {
  int world = 1;
  int dp_replicate = 1, dp_shard = 1, cp = 1, tp = 1, pp = 1, ep = 1, etp = 1, ulysses = 1;
  bool sequence_parallel = false;  // between tp regions, shard the tokens instead of repeating them
  rankc::expert_layout expert_layout = rankc::expert_layout::folded;
  rankc::cp_weights cp_weights = rankc::cp_weights::shard;
  rankc::cp_attention cp_attention = rankc::cp_attention::gather;
  rankc::reshard reshard = rankc::reshard::standard;
  int prefetch = 1;  // layers, or stages, whose weights are gathered ahead of the one that is computed
};

/// The axes, outermost first in either view, and what joins several: dp = batch every rank with data of its
/// own; loss dp and cp; fsdp the ranks that shard a dense weight; replicas those that hold the same shard;
/// efsdp and expert_replicas the same of an expert's weights; edp all that hold parts or copies of one
/// expert; model tp and pp; embedding the first and the last pipeline stage.
enum class axis : unsigned char {
  pp,
  dp_replicate,
  dp_shard,
  cp,
  edp_replicate,
  edp_shard,
  ep,
  ring,
  ulysses,
  tp,
  edp_inner,
  etp,
  dp,
  batch,
  fsdp,
  replicas,
  loss,
  dp_cp,
  tp_cp,
  tp_dp,
  model,
  efsdp,
  expert_replicas,
  edp,
  ep_etp,
  embedding
};

/// Axes in any order.
struct axis_set {
  unsigned long long bits = 0;
  constexpr axis_set() = default;
  template <class... More>
  constexpr axis_set(axis first, More... more) : bits((bit(first) | ... | bit(more))) {}
  constexpr bool has(axis_set all) const { return (bits & all.bits) == all.bits; }
  constexpr axis_set without(axis_set others) const { return axis_set(bits & ~others.bits); }
  friend constexpr axis_set operator|(axis_set a, axis_set b) { return axis_set(a.bits | b.bits); }
  constexpr bool operator==(const axis_set&) const = default;

 private:
  explicit constexpr axis_set(unsigned long long b) : bits(b) {}
  static constexpr unsigned long long bit(axis a) { return 1ull << static_cast<int>(a); }
};

/// Whether a view of the ranks has an axis.
enum class seen : unsigned char { never, if_independent, always };

/// What a degree is a factor of: the world (ep too, where experts are independent), the ranks of experts, or
/// cp.
enum class fills : unsigned char { world, experts, cp };

/// Which join cp belongs to follows from `cp_weights`.
enum class cp_joins : unsigned char { always, if_sharding, if_replicating };

/// What the ranks along an axis share out.
enum class part : unsigned char { nothing, layers, sequences, positions, heads, features, experts };

/// How much of an axis is lowered: nothing (RC103 refuses a degree above 1); tokens alone, whose gradients
/// are summed (RC226 refuses parameters that are typed as shards over it, and conversions); or all.
enum class lowered_values : unsigned char { nothing, tokens, all };

/// What ranks send each other, in the order in which communicators are made.
enum class purpose : unsigned char {
  nothing,
  messages,
  gradients,
  weights,
  loss,
  keys_and_values,
  heads,
  tokens,
  activations,
  tied
};

/// What the groups of an axis have a communicator for.
struct communication_of {
  rankc::purpose purpose = purpose::nothing;
  std::string_view what{};
};

struct axis_row {
  axis id;
  std::string_view name;
  std::string_view help{};                // for a person who sets its degree
  int parallel_dims::* degree = nullptr;  // where users declare one
  rankc::fills fills = fills::world;
  seen dense = seen::never, expert = seen::never;
  int (*size)(const parallel_dims&) = nullptr;  // of an axis of a view; null: its degree
  axis_set joins{};                             // what it is made of, if it is in no view
  cp_joins cp = cp_joins::always;               // among them
  bool ends = false;                            // only the first and the last rank
  part shares = part::nothing;
  bool places = false;  // values of a model have a placement on it
  lowered_values lowered = lowered_values::nothing;
  bool stays_in_node = false;  // its groups communicate in every layer: RC112
  char letter = 0;             // in drawings
  communication_of carries{};
};

/// The ranks that shard each dense weight.
/// Source: torchtitan, whose fsdp is dp_shard * cp.
constexpr int weight_shards(const parallel_dims& d) {
  return d.dp_shard * (d.cp_weights == cp_weights::shard ? d.cp : 1);
}
/// Whether several ranks of cp hold the same shard of each dense weight.
constexpr bool replicates_over_cp(const parallel_dims& d) {
  return d.cp_weights == cp_weights::replicate && d.cp > 1;
}

/// The ranks that hand on keys and values, each for its group of ulysses; 1: none do.
constexpr int ring_ranks(const parallel_dims& d) {
  return d.cp_attention == cp_attention::ring ? d.cp / d.ulysses : 1;
}

namespace detail {
constexpr bool is_independent(const parallel_dims& d) {
  return d.expert_layout == expert_layout::independent;
}
constexpr bool is_over_replicas(const parallel_dims& d) {
  return d.expert_layout == expert_layout::folded_over_replicas;
}
}  // namespace detail

/// The ranks that experts are spread over, of dims that factor the world: ep * etp must divide their number.
constexpr int expert_region(const parallel_dims& d) {
  const int replica = d.world / d.pp / (detail::is_over_replicas(d) ? 1 : d.dp_replicate);
  return detail::is_independent(d) ? replica / d.dp_shard : replica;
}

namespace detail {
constexpr int ring_size(const parallel_dims& d) { return d.cp / d.ulysses; }
constexpr int expert_replica_size(const parallel_dims& d) { return is_over_replicas(d) ? 1 : d.dp_replicate; }
constexpr int expert_rest(const parallel_dims& d) { return expert_region(d) / (d.ep * d.etp); }
constexpr int expert_shard_size(const parallel_dims& d) {
  return is_independent(d) ? d.dp_shard : expert_rest(d);
}
}  // namespace detail

/// The ranks that share out what a rank of ep and etp has of each expert weight.
constexpr int expert_weight_shards(const parallel_dims& d) {
  return d.world / (d.pp * detail::expert_replica_size(d) * d.ep * d.etp);
}

/// Whether ranks of ep have the same tokens, and compute dense layers alike; else each has tokens of its own.
constexpr bool repeats_tokens(const parallel_dims& d) { return d.ep > 1 && detail::is_independent(d); }

/// Whether experts are spread over ranks.
constexpr bool spreads_experts(const parallel_dims& d) { return d.ep > 1; }

/// Whether ranks share out weights, those of experts or the others, so that layers read what is gathered.
constexpr bool shards_weights(const parallel_dims& d) {
  return weight_shards(d) > 1 || (spreads_experts(d) && expert_weight_shards(d) > 1);
}

/// Whether dims whose degrees are known let go of gathered weights after each layer.
constexpr bool reshards_after_layer(const parallel_dims& d) {
  return shards_weights(d) &&
         (d.reshard == reshard::standard ? d.pp == 1 : d.reshard == reshard::after_layer);
}

inline constexpr axis_row axis_rows[]{
    {.id = axis::pp,
     .name = "pp",
     .help = "pipeline ranks; each degree is a number or infer",
     .degree = &parallel_dims::pp,
     .dense = seen::always,
     .expert = seen::always,
     .shares = part::layers,
     .lowered = lowered_values::all,
     .letter = 'p',
     .carries = {purpose::messages, "activations between stages"}},
    {.id = axis::dp_replicate,
     .name = "dp_replicate",
     .help = "replicas",
     .degree = &parallel_dims::dp_replicate,
     .dense = seen::always,
     .shares = part::sequences,
     .places = true,
     .lowered = lowered_values::tokens,
     .letter = 'r'},
    {.id = axis::dp_shard,
     .name = "dp_shard",
     .help = "data-parallel ranks that shard the weights",
     .degree = &parallel_dims::dp_shard,
     .dense = seen::always,
     .shares = part::sequences,
     .places = true,
     .lowered = lowered_values::tokens,
     .letter = 's'},
    {.id = axis::cp,
     .name = "cp",
     .help = "context-parallel ranks",
     .degree = &parallel_dims::cp,
     .joins = {axis::ring, axis::ulysses},
     .shares = part::positions,
     .places = true,
     .lowered = lowered_values::all},
    {.id = axis::edp_replicate,
     .name = "edp_replicate",
     .expert = seen::always,
     .size = detail::expert_replica_size},
    {.id = axis::edp_shard, .name = "edp_shard", .expert = seen::always, .size = detail::expert_shard_size},
    {.id = axis::ep,
     .name = "ep",
     .help = "expert-parallel ranks",
     .degree = &parallel_dims::ep,
     .fills = fills::experts,
     .dense = seen::if_independent,
     .expert = seen::always,
     .shares = part::experts,
     .places = true,
     .lowered = lowered_values::all,
     .stays_in_node = true,
     .letter = 'e',
     .carries = {purpose::tokens, "tokens to their experts"}},
    {.id = axis::ring,
     .name = "ring",
     .dense = seen::always,
     .size = detail::ring_size,
     .letter = 'c',
     .carries = {purpose::keys_and_values, "keys and values"}},
    {.id = axis::ulysses,
     .name = "ulysses",
     .help = "the part of cp that exchanges heads",
     .degree = &parallel_dims::ulysses,
     .fills = fills::cp,
     .dense = seen::always,
     .shares = part::heads,
     .lowered = lowered_values::all,
     .stays_in_node = true,
     .letter = 'u',
     .carries = {purpose::heads, "heads"}},
    {.id = axis::tp,
     .name = "tp",
     .help = "tensor-parallel ranks",
     .degree = &parallel_dims::tp,
     .dense = seen::always,
     .shares = part::features,
     .places = true,
     .lowered = lowered_values::all,
     .stays_in_node = true,
     .letter = 't',
     .carries = {purpose::activations, "activations of tensor-parallel regions"}},
    {.id = axis::edp_inner, .name = "edp_inner", .expert = seen::if_independent, .size = detail::expert_rest},
    {.id = axis::etp,
     .name = "etp",
     .help = "tensor-parallel ranks of an expert",
     .degree = &parallel_dims::etp,
     .fills = fills::experts,
     .expert = seen::always,
     .shares = part::features,
     .places = true,
     .lowered = lowered_values::all,
     .stays_in_node = true,
     .letter = 'x',
     .carries = {purpose::activations, "activations of tensor-parallel experts"}},
    {.id = axis::dp, .name = "dp", .joins = {axis::dp_replicate, axis::dp_shard}},
    {.id = axis::batch, .name = "batch", .joins = {axis::dp_replicate, axis::dp_shard}},
    {.id = axis::fsdp,
     .name = "fsdp",
     .joins = {axis::dp_shard, axis::cp},
     .cp = cp_joins::if_sharding,
     .carries = {purpose::weights, "shards of weights and gradients"}},
    {.id = axis::replicas,
     .name = "replicas",
     .joins = {axis::dp_replicate, axis::cp},
     .cp = cp_joins::if_replicating,
     .carries = {purpose::gradients, "gradients of replicated weights"}},
    {.id = axis::loss,
     .name = "loss",
     .joins = {axis::dp_replicate, axis::dp_shard, axis::cp},
     .carries = {purpose::loss, "loss and token counts"}},
    {.id = axis::dp_cp, .name = "dp_cp", .joins = {axis::dp_replicate, axis::dp_shard, axis::cp}},
    {.id = axis::tp_cp, .name = "tp_cp", .joins = {axis::cp, axis::tp}},
    {.id = axis::tp_dp, .name = "tp_dp", .joins = {axis::dp_replicate, axis::dp_shard, axis::tp}},
    {.id = axis::model, .name = "model", .joins = {axis::pp, axis::tp}},
    {.id = axis::efsdp,
     .name = "efsdp",
     .joins = {axis::edp_shard, axis::edp_inner},
     .carries = {purpose::weights, "shards of experts"}},
    {.id = axis::expert_replicas,
     .name = "expert_replicas",
     .joins = {axis::edp_replicate},
     .carries = {purpose::gradients, "gradients of replicated experts"}},
    {.id = axis::edp, .name = "edp", .joins = {axis::edp_replicate, axis::edp_shard, axis::edp_inner}},
    {.id = axis::ep_etp, .name = "ep_etp", .joins = {axis::ep, axis::etp}},
    {.id = axis::embedding,
     .name = "embedding",
     .joins = {axis::pp},
     .ends = true,
     .carries = {purpose::tied, "tied embeddings"}},
};
static_assert(
    [] {
      int i = 0;
      for (const axis_row& r : axis_rows)
        if (static_cast<int>(r.id) != i++) return false;
      return true;
    }(),
    "an axis of the enum has no row, or rows are in another order than the enum");
/// The axis of an op that converts over none. It has no row.
inline constexpr axis no_axis{std::size(axis_rows)};
constexpr const axis_row& row(axis a) { return axis_rows[static_cast<int>(a)]; }
constexpr std::string_view name(axis a) { return row(a).name; }
/// The ranks along an axis that is declared or of a view, of dims whose degrees are known.
constexpr int ranks_along(const parallel_dims& d, axis a) {
  return row(a).size ? row(a).size(d) : d.*row(a).degree;
}

/// Whether the ranks along an axis have sequences of their own and the same shards of dense weights.
constexpr bool holds_replicas(const axis_row& r) {
  return r.shares == part::sequences && !row(axis::fsdp).joins.has(r.id);
}
/// The ranks that hold the same shard of each dense weight.
constexpr int weight_replicas(const parallel_dims& d) {
  int ranks = d.cp_weights == cp_weights::replicate ? d.cp : 1;
  for (const axis_row& r : axis_rows)
    if (holds_replicas(r)) ranks *= d.*r.degree;
  return ranks;
}
/// Whether experts are spread over all ranks of a stage, though several of these hold the same dense weights.
constexpr bool spreads_experts_over_replicas(const parallel_dims& d) {
  return spreads_experts(d) && weight_replicas(d) > 1 && expert_region(d) == d.world / d.pp;
}

}  // namespace rankc
