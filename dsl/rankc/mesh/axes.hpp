// SPDX-License-Identifier: Apache-2.0
// The axes of a mesh. All facts about an axis are in its row of `axis_rows`, and nothing else lists axes. A
// new axis is a value of `axis`, its row and, if users declare its degree, a member of `parallel_dims`.
// `axes_check.hpp` checks them.
#pragma once
#include <iterator>
#include <string_view>

namespace rankc {

/// The degree that the other degrees determine.
inline constexpr int infer = -1;

/// The ranks of expert parallelism.
///   folded                the ranks of one replica of the dense layers: ep * etp divides dp_shard * cp * tp
///   folded_over_replicas  those of all replicas: ep * etp divides dp_replicate * dp_shard * cp * tp
///   independent           a separate axis of the world; the dense layers are computed ep times, on the
///                         same data
enum class expert_layout : unsigned char { folded, folded_over_replicas, independent };
inline constexpr std::string_view expert_layout_names[]{"folded", "folded_over_replicas", "independent"};

/// The ranks of a cp group either shard the weights, or each rank holds them.
enum class cp_weights : unsigned char { shard, replicate };
inline constexpr std::string_view cp_weights_names[]{"shard", "replicate"};

/// Attention over the keys and values of a ring, the cp ranks that do not exchange heads. `gather`: they are
/// all-gathered before attention. `ring`: they are sent from rank to rank, one rank's at a time.
enum class cp_attention : unsigned char { gather, ring };
inline constexpr std::string_view cp_attention_names[]{"gather", "ring"};

/// The time at which an FSDP rank frees the full weights that it has gathered.
///   after_layer  after each layer, while the next layer's weights are gathered (FSDP); each microbatch's
///                gradients are reduce-scattered
///   after_stage  after the last action of a stage, by UNSHARD and RESHARD in the schedule; each gradient is
///                reduce-scattered once a step
///   after_step   at the end of the step: each weight is gathered once and each gradient is reduce-scattered
///                once (ZeRO with full weights in a step)
///   standard     after_layer on one pipeline rank; after_step on several, because each microbatch would
///                gather the weights again
enum class reshard : unsigned char { standard, after_layer, after_stage, after_step };

/// The degree of each axis. world = pp * dp_replicate * dp_shard * cp * tp, times ep if experts are
/// independent; cp = ring * ulysses.
/// Errors: RC101 to RC109 and RC114, from `check_dims`.
struct parallel_dims {
  int world = 1;
  int dp_replicate = 1, dp_shard = 1, cp = 1, tp = 1, pp = 1, ep = 1, etp = 1, ulysses = 1;
  bool sequence_parallel = false;  // shard the tokens between tp regions instead of replicating them
  rankc::expert_layout expert_layout = rankc::expert_layout::folded;
  rankc::cp_weights cp_weights = rankc::cp_weights::shard;
  rankc::cp_attention cp_attention = rankc::cp_attention::gather;
  rankc::reshard reshard = rankc::reshard::standard;
  int prefetch = 1;  // layers, or stages, by which all-gathers of weights run ahead of computation
};

/// The axes, outermost first in either view, and the joined axes. Joined axes: dp and batch, all ranks with
/// their own data; loss, dp and cp; fsdp, the ranks that shard a dense weight; replicas, those that hold the
/// same shard; efsdp and expert_replicas, the same for an expert's weights; edp, all ranks that hold parts or
/// copies of one expert; model, tp and pp; embedding, the first and the last pipeline stage.
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

/// The condition under which a view of the ranks has an axis.
enum class seen : unsigned char { never, if_independent, always };

/// The product of which a degree is a factor: the world (also ep, if experts are independent), the ranks of
/// experts, or cp.
enum class fills : unsigned char { world, experts, cp };

/// `cp_weights` decides if a joined axis contains cp.
enum class cp_joins : unsigned char { always, if_sharding, if_replicating };

/// The part of the work or data that the ranks along an axis share.
enum class part : unsigned char { nothing, layers, sequences, positions, heads, features, experts };

/// The support for an axis in lowering. nothing: RC103 refuses a degree above 1. tokens: only tokens may be
/// sharded, and their gradients are summed; RC226 refuses parameters that are typed as shards over it, and
/// conversions. all: everything.
enum class lowered_values : unsigned char { nothing, tokens, all };

/// The purpose of a communication, in the order in which communicators are made.
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

/// The purpose of the communicator of an axis' groups.
struct communication_of {
  rankc::purpose purpose = purpose::nothing;
  std::string_view what{};
};

struct axis_row {
  axis id;
  std::string_view name;
  std::string_view help{};                // for a user who sets its degree
  int parallel_dims::* degree = nullptr;  // if users declare one
  rankc::fills fills = fills::world;
  seen dense = seen::never, expert = seen::never;
  int (*size)(const parallel_dims&) = nullptr;  // for an axis of a view; null: its degree
  axis_set joins{};                             // the axes that it joins, if it is in no view
  cp_joins cp = cp_joins::always;               // the rule by which it joins cp
  bool ends = false;                            // only the first and the last rank are members
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
/// True if several cp ranks hold the same shard of each dense weight.
constexpr bool replicates_over_cp(const parallel_dims& d) {
  return d.cp_weights == cp_weights::replicate && d.cp > 1;
}

/// The ranks of a ring of keys and values, one ring for each index in ulysses; 1: there is no ring.
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

/// The number of ranks over which experts can be sharded, for dims that factor the world. ep * etp must
/// divide it.
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

/// The number of ranks that shard each expert weight of a rank of ep and etp.
constexpr int expert_weight_shards(const parallel_dims& d) {
  return d.world / (d.pp * detail::expert_replica_size(d) * d.ep * d.etp);
}

/// True if ep ranks have the same tokens and repeat the dense layers. If false, each ep rank has its own
/// tokens.
constexpr bool repeats_tokens(const parallel_dims& d) { return d.ep > 1 && detail::is_independent(d); }

/// True if experts are sharded over ranks.
constexpr bool spreads_experts(const parallel_dims& d) { return d.ep > 1; }

/// True if ranks shard weights, dense ones or those of experts, so that layers read gathered weights.
constexpr bool shards_weights(const parallel_dims& d) {
  return weight_shards(d) > 1 || (spreads_experts(d) && expert_weight_shards(d) > 1);
}

/// True if gathered weights are freed after each layer. Degrees must be known.
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
/// The axis of an op that converts over no axis. It has no row.
inline constexpr axis no_axis{std::size(axis_rows)};
constexpr const axis_row& row(axis a) { return axis_rows[static_cast<int>(a)]; }
constexpr std::string_view name(axis a) { return row(a).name; }
/// The number of ranks along an axis that is declared or in a view. Degrees must be known.
constexpr int ranks_along(const parallel_dims& d, axis a) {
  return row(a).size ? row(a).size(d) : d.*row(a).degree;
}

/// True if the ranks along an axis have their own sequences and the same shards of dense weights.
constexpr bool holds_replicas(const axis_row& r) {
  return r.shares == part::sequences && !row(axis::fsdp).joins.has(r.id);
}
/// The number of ranks that hold the same shard of each dense weight.
constexpr int weight_replicas(const parallel_dims& d) {
  int ranks = d.cp_weights == cp_weights::replicate ? d.cp : 1;
  for (const axis_row& r : axis_rows)
    if (holds_replicas(r)) ranks *= d.*r.degree;
  return ranks;
}
/// True if experts are sharded over all ranks of a stage, although several of these ranks hold the same dense
/// weights.
constexpr bool spreads_experts_over_replicas(const parallel_dims& d) {
  return spreads_experts(d) && weight_replicas(d) > 1 && expert_region(d) == d.world / d.pp;
}

}  // namespace rankc
