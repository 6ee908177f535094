// SPDX-License-Identifier: Apache-2.0
// RC210, RC226, RC240, RC256, RC258: the rules of a traced layer for experts and their routers.
#pragma once
#include <rankc/models/trace_layer.hpp>
#include <rankc/rules/values/dims.hpp>

namespace rankc::detail {

/// RC256: the router statistics that a layer gets pass through it to the router losses. Returns true if they
/// do.
constexpr bool check_statistics(report& out, const trace& t, std::string_view layer) {
  const bool reach_losses = std::all_of(t.carried.begin(), t.carried.end(), [&](const carried_value& c) {
    return c.in < 0 || t.gradients[c.in] >= 0;
  });
  if (reach_losses) return true;
  refuse(out, 256)
      << "layer '" << layer
      << "' ends the model and takes no losses of its routers; call add_router_losses, or leave out "
      << "routers()";
  return false;
}
/// RC256: router statistics are f32 and follow a layer's bf16 result in one buffer, so the result has an even
/// number of elements.
constexpr void check_behind(report& out, const trace& t, std::string_view layer, const parallel_dims& given,
                            precision kept) {
  const bool hands_on =
      std::any_of(t.carried.begin(), t.carried.end(), [](const carried_value& c) { return c.gradient >= 0; });
  if (kept != bf16 || !hands_on) return;
  for (const diagnostic& said : out)
    if (said.id == 256) return;  // RC256 has been reported
  const type& y = t.values[t.result];
  long long numbers = 1;
  for (int i = 0; i < y.ndim; ++i) numbers *= y.shape[i].size / shards(y, i, resolve(given));
  if (numbers % 2)
    refuse(out, 256) << "layer '" << layer << "' passes " << numbers
                     << " numbers in bf16 to the next layer, and the statistics of routers follow them in "
                        "f32; take an even number of tokens or of features";
}
/// RC256: the number of layers that keep router statistics is the number that the model declares.
constexpr void check_routers(report& out, const router_statistics& s, int layers) {
  if (s.any() && layers != s.of.layers)
    refuse(out, 256) << "the model declares routers in " << s.of.layers << " layers, but " << layers
                     << " keep their statistics; set .layers = " << layers
                     << ", or call keep_statistics once in each";
}
constexpr int count_routers(const trace& t) {
  int n = 0;
  for (std::size_t i = 0; i < t.forward_ops; ++i) n += t.ops[i].kind == &ops::push;
  return n;
}

/// RC258: each capacity group is on one rank as a whole, so that all layouts drop the same choices.
constexpr void check_limits(report& out, const trace& t, const parallel_dims& d, int seq_of_plan) {
  for (std::size_t i = 0; i < t.forward_ops; ++i) {
    const op& o = t.ops[i];
    if (o.kind != &ops::arrange_limited) continue;
    const type& chosen = t.values[o.in[0]];
    const int in_line = seq_of_plan / (d.cp > 1 ? 2 * d.cp : 1),
              of_rank = chosen.shape[0].size / shards(chosen, 0, d);
    const int whole = std::gcd(in_line, of_rank), group = o.with.seq;
    if (whole % group == 0) continue;
    offers found;
    found.add("capacity_group", find_nearest(group, whole, [&](int n) { return whole % n == 0; }));
    sentence& s =
        refuse(out, 258) << "a capacity group of " << group
                         << " positions must be contiguous on one rank and divide seq=" << seq_of_plan;
    if (d.cp > 1) s << ", of which a rank of cp=" << d.cp << " has two chunks";
    if (d.sequence_parallel)
      s << (d.cp > 1 ? ", sharded over " : ", which is sharded over ") << name(region_axis) << "="
        << region_ranks(d) << " (sequence_parallel)";
    s << found.view();
    return;
  }
}

/// The text after `factors_of_replica` in a sentence. Both together are the number of ranks that shard an
/// expert's weight.
constexpr std::string_view expert_divisor(const parallel_dims& d) {
  if (repeats_tokens(d)) return "";
  return d.etp > 1 ? " / (ep * etp)" : " / ep";
}

/// RC240: the rows of an ep rank's experts divide by the number of ranks that shard them (FSDP).
constexpr void check_expert_shards(report& out, const trace& t, const parallel_dims& given) {
  const parallel_dims d = resolve(given);
  const int shards = d.ep == 1 ? 1 : expert_weight_shards(d);
  for (const weight_info& w : t.weights) {
    const int rows = w.holds.shape[0].size / d.ep;
    if (w.holds[axis::ep] != V(0) || rows % shards == 0) continue;
    offers found;
    const bool over_replicas = d.expert_layout == expert_layout::folded_over_replicas && d.dp_replicate > 1;
    const int all = static_cast<int>(batch_ranks(d)),
              each = static_cast<int>(ranks_along_each(d, cuts_sequences)),
              experts = w.holds.shape[0].count();
    const bool apart = repeats_tokens(d);
    // True if the rows of an ep rank's experts divide by the number of ranks that shard them.
    const auto divide = [&](int dp, int ep) {
      const int spread = (apart ? 1 : ep) * d.etp;  // ranks that experts are spread over
      return experts % ep == 0 && dp * each % spread == 0 &&
             w.holds.shape[0].size / ep % (dp * each / spread) == 0;
    };
    if (!over_replicas)
      found.add("dp_shard",
                find_nearest(d.dp_shard, all, [&](int n) { return all % n == 0 && divide(n, d.ep); }));
    else found.add("ep", find_nearest(d.ep, experts, [&](int n) { return divide(all, n); }));
    if (over_replicas && divide(d.dp_shard, d.ep)) found.next() << "expert_layout=folded";
    refuse(out, 240) << "parameter '" << w.name << "' has " << rows << " rows on each rank of ep=" << d.ep
                     << ", and they do not divide by the " << shards << " ranks that share these out, "
                     << (over_replicas ? "dp_replicate * " : "") << factors_of_replica().view()
                     << expert_divisor(d) << (over_replicas ? "" : " (dp_replicate takes the rest)")
                     << found.view();
    return;
  }
}

/// RC226: etp shards the columns of experts that are sharded over ep, and no other parameter.
constexpr void check_expert_columns(report& out, const trace& t, const parallel_dims& d) {
  if (d.etp == 1) return;
  for (const weight_info& w : t.weights) {
    const bool is_spread = d.ep > 1 && w.holds[axis::ep] == V(0), has_columns = w.holds[axis::etp] == V(1);
    if (is_spread ? has_columns : w.holds[axis::etp] == I) continue;
    complaint c{"parameter", w.name, w.from};
    complaint::put(c.begin() << "it is ", w.holds, w.holds[axis::etp]);
    refuse(out, 226)
        << c.text.view() << " over etp=" << d.etp
        << "; with experts sharded over ep, this version shards their columns over etp, and no other "
           "parameter";
    return;
  }
}

/// True if an op sends tokens over ep that all ranks of a tensor-parallel region have. These ranks are ep
/// ranks too, so experts would compute the tokens several times.
constexpr bool sends_tokens_of_region(const trace& t, const op& o, const parallel_dims& d) {
  if (region_ranks(d) == 1 || repeats_tokens(d)) return false;
  const type& sent = t.values[static_cast<std::size_t>(o.in[0])];
  return o.kind == &ops::share_offsets ? sent[region_axis] != P : sent[region_axis] != V(0);
}

/// RC210: refuses an op that needs the same tokens on all ep ranks if each rank has its own, and the reverse.
constexpr void check_tokens_of_experts(report& out, const trace& t, const parallel_dims& d) {
  if (d.ep == 1) return;
  for (const op& o : t.ops) {
    const bool exchanges = is_one_of(o.kind, {&ops::to_experts, &ops::from_experts, &ops::share_offsets});
    const bool repeats = o.kind == &ops::own_slots ||
                         (o.over == axis::ep && is_one_of(o.kind, {&ops::replicate, &ops::all_reduce}));
    const bool of_region = exchanges && sends_tokens_of_region(t, o, d);
    if (!of_region && (repeats_tokens(d) ? !exchanges : !repeats)) continue;
    complaint c{o.kind->name, {}, o.from};
    if (of_region)
      c.begin() << "it sends tokens over ep=" << d.ep << ", and the " << region_ranks(d) << " ranks of "
                << name(region_axis) << " have the same tokens; expected a shard on each, as with "
                << "sequence_parallel (V): let the layers before leave " << name(region_axis)
                << " (leave_tp), or take " << name(region_axis) << "=1";
    else if (exchanges)
      c.begin() << "it sends tokens over ep=" << d.ep
                << ", whose ranks have the same tokens (expert_layout=independent); take own_slots, and "
                   "all-reduce the combined result";
    else
      c.begin() << "it needs the same tokens on all ranks of ep=" << d.ep
                << ", and each has different ones; exchange slots of tokens (to_experts), or take "
                   "expert_layout=independent";
    refuse(out, 210) << c.text.view();
    return;
  }
}

}  // namespace rankc::detail
