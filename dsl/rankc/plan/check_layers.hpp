// SPDX-License-Identifier: Apache-2.0
// A plan's layers, traced, and what each does wrong: RC202, RC210 to RC213, RC223 to RC226, RC228, RC258, RC259.
#pragma once
#include <rankc/mesh/dims.hpp>
#include <rankc/models/layer.hpp>
#include <rankc/rules/batch.hpp>
#include <rankc/rules/model.hpp>
#include <rankc/rules/pipeline.hpp>

namespace rankc::detail {

template <class T>
inline constexpr bool is_repeat = false;
template <class T>
inline constexpr bool is_repeat<repeat<T>> = true;

constexpr int count_of(const auto& entry) {
  if constexpr (is_repeat<std::decay_t<decltype(entry)>>) return entry.count;
  else return 1;
}
constexpr const auto& layer_of(const auto& entry) {
  if constexpr (is_repeat<std::decay_t<decltype(entry)>>) return entry.layer;
  else return entry;
}

/// The type of token ids and targets: whole sequences distributed over the data-parallel axes.
constexpr type token_type(const dim& tokens) {
  type t;
  t.ndim = 1;
  t.shape[0] = tokens;
  t.holds = element::index;
  for (axis a : axes)
    if (row(a).shares == part::sequences || row(a).shares == part::positions) t[a] = V(0);
  return t;
}

/// The type of the starts of documents: whole sequences on every rank of a replica.
constexpr type starts_type(const dim& tokens) {
  type t = token_type(tokens);
  for (axis a : axes)
    if (row(a).shares == part::positions) t[a] = I;
  return t;
}

/// Where the routers of a model keep their sums, of so many tokens in microbatches of `of_microbatch` on `ranks` data-parallel ranks.
constexpr router_statistics statistics_of(const auto& model, int tokens, int of_microbatch, int ranks) {
  router_statistics s;
  if constexpr (requires { model.routers(); }) s.of = model.routers();
  const bool local = s.of.losses.local;
  s.tokens = local ? of_microbatch / ranks : of_microbatch;
  s.groups = dim{local ? replicas : microbatches, tokens / s.tokens};
  return s;
}
/// The type of these sums, before each layer: parts of sums over tokens that are distributed.
constexpr type statistics_type(const layer_context& c) {
  type t;
  t.ndim = 2;
  t.shape[0] = c.routers.groups, t.shape[1] = c.routers.of_layers();
  t.holds = element::wide;
  type tokens = token_type(c.tokens);
  if (c.sequence_parallel) tokens[axis::tp] = V(0);
  for (axis a : axes) t[a] = sum_of_tokens(a, tokens, c.routers.groups);
  return t;
}

/// Trace one layer forward and backward from the type of its input, its parameters trained as the recipe says.
template <class Layer>
constexpr trace trace_layer(const Layer& layer, const type& input, layer_context c, const training& recipe) {
  trace t;
  t.recipe = &recipe;
  const value x = t.add(input);
  t.input = x.id;
  c.targets = t.add(token_type(c.tokens));
  if (recipe.has_documents()) c.starts = t.add(starts_type(c.tokens)), t.starts = c.starts.id;
  if (c.routers.any()) {
    const bool is_first = input.holds == element::index;
    const value s = is_first ? t.make(ops::zeros, statistics_type(c)) : t.add(statistics_type(c));
    t.hand_on_statistics(s);
    if (!is_first) t.statistics = s.id;
  }
  t.derive_backward(layer.forward(t, x, c));
  const bool counts_alone = t.statistics >= 0 && t.routers_kept >= 0 && t.said.empty() && t.gradients[t.statistics] < 0;
  if (counts_alone) t.gradients[t.statistics] = t.make(ops::zeros, cotangent(t.values[t.statistics])).id;
  t.recipe = nullptr;
  return t;
}

/// The shards that dim i of a value is split into.
constexpr int shards(const type& v, int i, const parallel_dims& d) {
  int ways = 1;
  for (axis a : axes) ways *= shards_over(v, i, a, d);
  return ways;
}

/// RC202: what is sharded must divide into equal shards of whole units.
constexpr void check_shards(report& out, const trace& t, const parallel_dims& given, const layer_context& c) {
  const parallel_dims d = resolve(given);
  auto refused_before = [&](std::string_view text) {
    for (const diagnostic& said : out)
      if (said.text.view() == text) return true;
    return false;
  };
  auto refuse_dim = [&](const type& v, int i) {
    const dim& s = v.shape[i];
    const int ways = shards(v, i, d);
    sentence text, over;
    offers found;
    for (axis a : axes) {
      if (shards_over(v, i, a, d) == 1) continue;
      const axis by = shared_over(v[a], i, a);
      int parallel_dims::*degree = row(row(by).degree ? by : a).degree;
      over << (over.empty() ? "" : " * ") << name(by);
      found.add_degree(given, degree,
                       find_nearest_degree(given, degree, false,
                                           [&](const parallel_dims& x) { return s.count() % shards(v, i, x) == 0; }));
    }
    // Nobody writes a number of tokens: it follows from the length of a sequence.
    const bool of_sequences = s.name == c.tokens.name;
    const int each = of_sequences ? s.count() / c.seq : 1;
    found.add(of_sequences ? "seq" : s.name, find_nearest(s.count() / each, std::numeric_limits<int>::max() / each - 1,
                                                          [&](int n) { return n * each % ways == 0; }));
    put_shards(text, s.name, s.count(), over.view(), ways) << found.view();
    if (!refused_before(text.view())) refuse(out, 202) << text.view();
  };
  auto check_dims_of = [&](const type& v) {
    for (int i = 0; i < v.ndim; ++i)
      if (v.shape[i].count() % shards(v, i, d)) refuse_dim(v, i);
  };
  for (const weight_info& w : t.weights) check_dims_of(w.holds);
  for (const type& v : t.values) check_dims_of(v);
}

/// RC211: a layer that cannot follow itself.
constexpr void refuse_repeat(report& out, std::string_view layer, const type& x, const type& y) {
  sentence& s = refuse(out, 211) << "layer '" << layer << "' is repeated, but ";
  if (!rules::same_shape(x, y) || x.holds != y.holds) {
    complaint::put_shape(s << "it makes ", y);
    complaint::put_shape(s << " of ", x);
    s << "; its result must be like its input";
    return;
  }
  const char* separator = "";
  for (axis a : axes)
    if (x[a] != y[a]) {
      complaint::put(s << separator << "its result is ", y, y[a]);
      complaint::put(s << " over " << name(a) << " and its input ", x, x[a]);
      separator = ", ";
    }
  s << "; end it with the conversion that gives the placement of its input";
}

/// RC256: the statistics of routers, where a model says that it has routers, go from layer to layer, and to their losses.
constexpr bool check_statistics(report& out, const trace& t, std::string_view layer) {
  if (t.statistics < 0 || t.gradients[t.statistics] >= 0) return true;
  refuse(out, 256) << "layer '" << layer << "' ends the model and takes no losses of its routers; call add_router_losses, or leave out "
                   << "routers()";
  return false;
}
/// RC256: statistics, in f32, lie behind the numbers in bf16 that a layer hands on.
constexpr void check_behind(report& out, const trace& t, std::string_view layer, const parallel_dims& given, precision kept) {
  if (kept != bf16 || t.statistics_gradient < 0) return;
  for (const diagnostic& said : out)
    if (said.id == 256) return;  // of the layer before
  const type& y = t.values[t.result];
  long long numbers = 1;
  for (int i = 0; i < y.ndim; ++i) numbers *= y.shape[i].size / shards(y, i, resolve(given));
  if (numbers % 2)
    refuse(out, 256) << "layer '" << layer << "' hands on " << numbers << " numbers of bf16, and the statistics of routers, in f32, behind "
                     << "them; take an even number of tokens or of features";
}
/// RC256: as many layers keep statistics as the model says.
constexpr void check_routers(report& out, const router_statistics& s, int layers) {
  if (s.any() && layers != s.of.layers)
    refuse(out, 256) << "the model says that it has routers in " << s.of.layers << " layers, and " << layers << " keep their statistics; "
                     << "say .layers = " << layers << ", or call keep_statistics once in each";
}
constexpr int count_routers(const trace& t) {
  int n = 0;
  for (std::size_t i = 0; i < t.forward_ops; ++i) n += t.ops[i].kind == &ops::push;
  return n;
}

/// RC210: a conversion over an axis that no value is placed on, or a parameter that is sharded over one.
constexpr void check_axes_of(report& out, const trace& t) {
  const auto refuse_axis = [&](complaint c, std::string_view does, std::string_view over) {
    sentence& s = c.begin() << does << over << ", and no value is placed on it; values are placed on ";
    for (int i = 0; i < n_axes; ++i) s << (i == 0 ? "" : i == n_axes - 1 ? " and " : ", ") << name(axes[i]);
    refuse(out, 210) << s.view();
  };
  for (const op& o : t.ops)
    if (index(o.over) == n_axes && o.kind->converts != conversion::none)
      return refuse_axis({o.kind->name, {}, o.from}, "it is over ", name(o.over));
  for (const weight_info& w : t.weights)
    if (w.holds.at[n_axes] != I)
      return refuse_axis({"parameter", w.name, w.from}, "it is sharded over ", "another axis");
}

/// RC210, RC211, RC213: what one layer does wrong. Says whether the next can be traced.
constexpr bool check_layer(report& out, const trace& t, std::string_view layer, int count) {
  if (!is_name(layer)) {
    refuse(out, 224) << "a layer is named '" << layer << "'; " << legal_names;
    return false;
  }
  for (const sentence& s : t.said) refuse(out, 210) << s.view();
  if (!t.said.empty()) return false;
  const std::size_t before = out.size();
  check_axes_of(out, t);
  if (out.size() > before) return false;
  const type &x = t.values[t.input], &y = t.values[t.result];
  if (y.holds == element::index) {
    refuse(out, 213) << "the result of layer '" << layer << "' is token ids; expected rows of features, or a loss";
    return false;
  }
  if (x.holds != element::index && t.gradients[t.input] < 0) {
    refuse(out, 213) << "the result of layer '" << layer
                     << "' does not depend on its input, so that the layers before it "
                     << "are not trained; use the input";
    return false;
  }
  for (std::size_t i = 0; i < t.forward_ops; ++i) {
    const int made = t.ops[i].out[0];
    const bool is_loss = made >= 0 && t.values[made].ndim == 0;
    if (!is_loss || (made == t.result) != t.is_side_loss(made)) continue;
    sentence& s = refuse(out, 212) << "layer '" << layer << "' ";
    if (made == t.result) s << "adds the loss that is its result, which counts already; return it alone";
    else s << "makes a loss that does not count; return it, or add it with add_loss";
    return false;
  }
  if (!check_statistics(out, t, layer)) return false;
  if (count > 1 && y != x) refuse_repeat(out, layer, x, y);
  return count == 1 || y == x;
}

constexpr bool is_one_of(const op_row* row, std::initializer_list<const op_row*> rows) {
  for (const op_row* each : rows)
    if (each == row) return true;
  return false;
}

/// RC259: a token that ends documents is one of the vocabulary.
constexpr void check_end_of_document(report& out, const training& recipe, int used) {
  if (!recipe.has_documents() || (recipe.end_of_document >= 0 && recipe.end_of_document < used)) return;
  refuse(out, 259) << "end_of_document=" << recipe.end_of_document << " is no token; tokens are 0 to " << used - 1
                   << ", and -1 says that a sequence is one document";
}
/// RC259: where sequences are of documents, attention and learned positions are told of them.
constexpr void check_documents(report& out, const trace& t, std::string_view layer) {
  for (std::size_t i = 0; t.starts >= 0 && i < t.forward_ops; ++i) {
    const op& o = t.ops[i];
    if (!is_one_of(o.kind, {&ops::attention, &ops::ring_attention, &ops::position})) continue;
    refuse(out, 259) << o.kind->name << " of layer '" << layer << "' is of whole sequences, and end_of_document says that they are of "
                     << "documents; give it the layer_context's starts, or call self_attention and position with the context";
    return;
  }
}

/// RC210: sequences that do not make up the tokens of a data-parallel rank, or are not those that ranks of cp share out.
constexpr void check_sequences(report& out, const trace& t, const parallel_dims& d, int seq_of_plan) {
  for (std::size_t i = 0; i < t.forward_ops; ++i) {
    const op& o = t.ops[i];
    const bool is_attention = is_one_of(o.kind, {&ops::attention, &ops::ring_attention, &ops::document_attention, &ops::document_ring_attention});
    if (!is_attention && !is_one_of(o.kind, {&ops::rope, &ops::position, &ops::document_position, &ops::all_to_all})) continue;
    const int tokens = t.values[o.in[0]].shape[0].size / static_cast<int>(batch_ranks(d)), seq = o.with.seq;
    const bool fills = seq >= 1 && (is_attention ? static_cast<long long>(o.with.rows) * seq == tokens : tokens % seq == 0);
    complaint c{o.kind->name, {}, o.from};
    if (fills && d.cp > 1 && seq != seq_of_plan)
      c.begin() << "it is of sequences of " << seq << " tokens, and the ranks of cp=" << d.cp << " share out sequences of seq=" << seq_of_plan
                << "; take these, or cp=1";
    if (!fills && is_attention) c.begin() << o.with.rows << " sequences of " << seq << " tokens are not";
    else if (!fills) c.begin() << "sequences of " << seq << " tokens do not divide";
    if (!fills) c.text << " the " << tokens << " tokens of a microbatch on a data-parallel rank; rows * seq is";
    if (c.said) refuse(out, 210) << c.text.view();
  }
}

/// RC258: groups of tokens of which experts take so many lie whole on one rank, so that all layouts drop alike.
constexpr void check_limits(report& out, const trace& t, const parallel_dims& d, int seq_of_plan) {
  for (std::size_t i = 0; i < t.forward_ops; ++i) {
    const op& o = t.ops[i];
    if (o.kind != &ops::arrange_limited) continue;
    const type& chosen = t.values[o.in[0]];
    const int in_line = seq_of_plan / (d.cp > 1 ? 2 * d.cp : 1), of_rank = chosen.shape[0].size / shards(chosen, 0, d);
    const int whole = std::gcd(in_line, of_rank), group = o.with.seq;
    if (whole % group == 0) continue;
    offers found;
    found.add("capacity_group", find_nearest(group, whole, [&](int n) { return whole % n == 0; }));
    sentence& s = refuse(out, 258) << "experts take so many picks of each " << group << " positions in line, and of seq=" << seq_of_plan;
    if (d.cp > 1) s << " a rank of cp=" << d.cp << " has two runs";
    if (d.sequence_parallel) s << (d.cp > 1 ? ", which" : "") << " tp=" << d.tp << " shares out (sequence_parallel)";
    s << "; a group is to lie whole on one rank" << found.view();
    return;
  }
}

/// RC210: what is exchanged in groups that the plan does not have, or over all of cp where it has groups.
constexpr void check_groups(report& out, const trace& t, const parallel_dims& d) {
  const int groups = d.ulysses > 1 ? ring_ranks(d) : 1;
  for (const op& o : t.ops) {
    const conversion does = o.kind->converts;
    const bool exchanges = does == conversion::all_to_all, gathers = does == conversion::all_gather || does == conversion::reduce_scatter;
    if (o.over != axis::cp || !(exchanges ? (o.with.ring > 1 ? o.with.ring : 1) != groups : gathers && groups > 1)) continue;
    complaint c{o.kind->name, {}, o.from};
    if (exchanges)
      c.begin() << "it is in groups of a ring of " << (o.with.ring > 1 ? o.with.ring : 1) << "; rings of this plan have " << groups
                << " groups (cp / ulysses): take the layer_context's ring";
    else
      c.begin() << "it is over all of cp=" << d.cp << ", whose ranks are in groups of ulysses=" << d.ulysses
                << "; take all_to_all in these and shift between them, or ulysses=1 or ulysses=" << d.cp;
    refuse(out, 210) << c.text.view();
    return;
  }
}

/// RC210: what is handed on around a ring that the plan does not have, or to no op of the layer.
constexpr void check_rings(report& out, const trace& t, const parallel_dims& d) {
  const auto is_read = [&](int v, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      for (int read : t.ops[i].in)
        if (read == v) return true;
    return false;
  };
  for (std::size_t i = 0; i < t.ops.size(); ++i) {
    const op& o = t.ops[i];
    const bool shifts = o.kind == &ops::shift || o.kind == &ops::shift_back, forward = i < t.forward_ops;
    if (!shifts && !is_one_of(o.kind, {&ops::ring_attention, &ops::document_ring_attention})) continue;
    complaint c{o.kind->name, {}, o.from};
    if (o.with.ring != ring_ranks(d))
      c.begin() << "it is of a ring of " << o.with.ring << " ranks; rings of this plan have " << ring_ranks(d)
                << " (cp / ulysses with cp_attention=ring): take the layer_context's ring";
    for (int made : {o.out[0], o.out[1]})
      if (shifts && !c.said && !is_read(made, forward ? 0 : t.forward_ops, forward ? t.forward_ops : t.ops.size()))
        c.begin() << "no op of the layer reads " << (forward ? "what comes" : "the gradient that comes back")
                  << " around the ring; put one behind it";
    if (!c.said) continue;
    refuse(out, 210) << c.text.view();
    return;
  }
}

/// RC240: the rows of a parameter that tp shares out divide among the ranks that share weights too. Those of others may end in
/// padding.
constexpr void check_row_shards(report& out, const trace& t, const parallel_dims& given) {
  const parallel_dims d = resolve(given);
  const int shards = weight_shards(d), of_cp = shards / d.dp_shard;
  if (shards == 1 || d.tp == 1) return;
  for (const weight_info& w : t.weights) {
    const dim& of = w.holds.shape[0];
    const int rows = of.size / d.tp;
    if (w.holds[axis::tp] != V(0) || rows % shards == 0) continue;
    offers found;
    found.add("dp_shard", find_nearest(d.dp_shard, d.dp_shard * d.dp_replicate,
                                       [&](int n) { return d.dp_shard * d.dp_replicate % n == 0 && rows % (n * of_cp) == 0; }));
    found.add(of.name, find_nearest(of.count(), std::numeric_limits<int>::max() / of.unit,
                                    [&](int n) { return n * of.unit % (d.tp * shards) == 0; }));
    sentence& s = refuse(out, 240) << "parameter '" << w.name << "' has " << rows << " rows on each rank of tp=" << d.tp
                                   << ", and they do not divide by dp_shard=" << d.dp_shard;
    if (of_cp > 1) s << " * cp=" << of_cp;
    s << " (dp_replicate takes the rest)" << found.view();
    if (of_cp > 1) s << ", or cp_weights=replicate";
    return;
  }
}

/// RC240: the same of the experts that a rank of ep has.
constexpr void check_expert_shards(report& out, const trace& t, const parallel_dims& given) {
  const parallel_dims d = resolve(given);
  const int shards = d.ep == 1 ? 1 : expert_weight_shards(d);
  for (const weight_info& w : t.weights) {
    const int rows = w.holds.shape[0].size / d.ep;
    if (w.holds[axis::ep] != V(0) || rows % shards == 0) continue;
    offers found;
    const bool over_replicas = d.expert_layout == expert_layout::folded_over_replicas && d.dp_replicate > 1;
    const int all = d.dp_shard * d.dp_replicate, each = d.cp * d.tp, experts = w.holds.shape[0].count();
    const bool apart = repeats_tokens(d);
    const auto divide = [&](int dp, int ep) {  // a rank's rows of so many ranks' experts
      const int spread = (apart ? 1 : ep) * d.etp;  // of these ranks
      return experts % ep == 0 && dp * each % spread == 0 && w.holds.shape[0].size / ep % (dp * each / spread) == 0;
    };
    if (!over_replicas) found.add("dp_shard", find_nearest(d.dp_shard, all, [&](int n) { return all % n == 0 && divide(n, d.ep); }));
    else found.add("ep", find_nearest(d.ep, experts, [&](int n) { return divide(all, n); }));
    if (over_replicas && divide(d.dp_shard, d.ep)) found.next() << "expert_layout=folded";
    refuse(out, 240) << "parameter '" << w.name << "' has " << rows << " rows on each rank of ep=" << d.ep << ", and they do not divide by the "
                     << shards << " ranks that share these out, " << (over_replicas ? "dp_replicate * " : "") << "dp_shard * cp * tp"
                     << (apart ? "" : d.etp > 1 ? " / (ep * etp)" : " / ep") << (over_replicas ? "" : " (dp_replicate takes the rest)") << found.view();
    return;
  }
}

/// RC226: ranks of etp have columns of the experts that ranks of ep have, and of no other parameters.
constexpr void check_expert_columns(report& out, const trace& t, const parallel_dims& d) {
  if (d.etp == 1) return;
  for (const weight_info& w : t.weights) {
    const bool is_spread = d.ep > 1 && w.holds[axis::ep] == V(0), has_columns = w.holds[axis::etp] == V(1);
    if (is_spread ? has_columns : w.holds[axis::etp] == I) continue;
    complaint c{"parameter", w.name, w.from};
    complaint::put(c.begin() << "it is ", w.holds, w.holds[axis::etp]);
    refuse(out, 226) << c.text.view() << " over etp=" << d.etp << "; of experts that are spread over ep this version shards the columns over it, and of "
                     << "other parameters nothing";
    return;
  }
}

/// Whether what is sent over ep is of tokens that ranks of tp, which are ranks of ep too, have all of.
constexpr bool sends_tokens_of_tp(const trace& t, const op& o, const parallel_dims& d) {
  if (d.tp == 1 || repeats_tokens(d)) return false;
  const type& sent = t.values[static_cast<std::size_t>(o.in[0])];
  return o.kind == &ops::share_offsets ? sent[axis::tp] != P : sent[axis::tp] != V(0);
}

/// RC210: what takes ranks of ep to have the same tokens where each has its own, or the other way.
constexpr void check_tokens_of_experts(report& out, const trace& t, const parallel_dims& d) {
  if (d.ep == 1) return;
  for (const op& o : t.ops) {
    const bool exchanges = is_one_of(o.kind, {&ops::to_experts, &ops::from_experts, &ops::share_offsets});
    const bool repeats = o.kind == &ops::own_slots || (o.over == axis::ep && is_one_of(o.kind, {&ops::replicate, &ops::all_reduce}));
    const bool of_tp = exchanges && sends_tokens_of_tp(t, o, d);
    if (!of_tp && (repeats_tokens(d) ? !exchanges : !repeats)) continue;
    complaint c{o.kind->name, {}, o.from};
    if (of_tp)
      c.begin() << "it sends tokens over ep=" << d.ep << ", and of its ranks those of tp=" << d.tp << " have the same; expected a part on each, as "
                << "sequence_parallel has it (V): let the layers before leave tp (leave_tp), or take tp=1";
    else if (exchanges)
      c.begin() << "it sends tokens over ep=" << d.ep << ", whose ranks have the same (expert_layout=independent); take own_slots, and sum up what is combined of them";
    else
      c.begin() << "it is of tokens that all ranks of ep=" << d.ep << " have, and each has its own; exchange slots of tokens (to_experts), or take expert_layout=independent";
    refuse(out, 210) << c.text.view();
    return;
  }
}

/// RC223: token ids are rows of the tables that they look up, and columns of the logits that they are targets of.
constexpr void check_vocabulary(report& out, const trace& t, std::string_view layer, int used) {
  const auto refuse_rows = [&](std::string_view what, const dim& rows) {
    refuse(out, 223) << what << " of layer '" << layer << "' has " << rows.name << "=" << rows.size
                     << " for token ids below " << used
                     << "; make it at least that large, or take vocab_used=" << rows.size;
  };
  for (std::size_t i = 0; i < t.forward_ops; ++i) {
    const op& o = t.ops[i];
    if (o.kind == &ops::embedding && t.values[o.in[1]].shape[0].size < used)
      refuse_rows("the embedding", t.values[o.in[1]].shape[0]);
    if (o.kind == &ops::exp_sums && t.values[o.in[0]].shape[1].size < used)
      refuse_rows("the loss", t.values[o.in[0]].shape[1]);
  }
}

/// Whether a kernel of an op is told of sequences.
constexpr bool takes_sequences(const op_row& row) {
  for (const kernel_row* k : {&row.host, &row.cuda})
    for (std::string_view word : {"rows", "seq"})
      for (std::size_t at = k->sizes.find(word); at != k->sizes.npos; at = k->sizes.find(word, at + 1)) {
        const std::size_t end = at + word.size();
        const bool begins = at == 0 || k->sizes[at - 1] == ' ' || k->sizes[at - 1] == '*';
        if (begins && (end == k->sizes.size() || k->sizes[end] == ' ' || k->sizes[end] == '*')) return true;
      }
  return false;
}

/// RC225: a user's op whose row lacks what lowering asks of it. (rankc's own rows are held to it by a test.)
constexpr void check_kernels(report& out, const trace& t, const parallel_dims& d) {
  std::vector<const op_row*> seen;
  for (const op& o : t.ops) {
    bool is_new = !ops::is_known(o.kind);
    for (const op_row* row : seen) is_new &= row != o.kind;
    if (!is_new) continue;
    seen.push_back(o.kind);
    complaint c{o.kind->name, {}, o.from};
    check_row(c, *o.kind, false);
    if (!c.said && d.cp > 1 && takes_sequences(*o.kind))
      c.begin() << "its kernel is told of sequences, and with cp=" << d.cp << " a rank has chunks of them; take a kernel of tokens, or cp=1";
    if (c.said) refuse(out, 225) << c.text.view();
  }
}

/// RC228: shards in an order for which there are no kernels.
constexpr void check_orders(report& out, const trace& t, const parallel_dims& d) {
  const auto refuse_order = [&](complaint c, const type& v) {
    for (int i = 0; i < v.ndim; ++i) {
      if (v.shape[i].order == shard_order::contiguous || shards(v, i, d) == 1) continue;
      complaint::put_dim(c.begin() << "it is sharded along ", v.shape[i]);
      refuse(out, 228) << c.text.view() << "; this version has kernels for contiguous shards: leave the dim's order out";
      return true;
    }
    return false;
  };
  for (const weight_info& w : t.weights)
    if (refuse_order({"parameter", w.name, w.from}, w.holds)) return;
  for (const op& o : t.ops)
    for (int made : o.out)
      if (made >= 0 && refuse_order({o.kind->name, {}, o.from}, t.values[made])) return;
}

/// RC226: over an axis whose ranks have tokens of their own, parameters that are not made of them; where tokens alone are
/// lowered, conversions.
constexpr void check_tokens_alone(report& out, const trace& t, axis a) {
  for (const weight_info& w : t.weights) {
    if (w.holds[a] == I && (w.gradient[a] == P || !w.trainable)) continue;
    complaint c{"parameter", w.name, w.from};
    complaint::put(c.begin() << "it is ", w.holds, w.holds[a]);
    complaint::put(c.text << " and its gradient ", w.gradient, w.gradient[a]);
    refuse(out, 226) << c.text.view() << " over " << name(a)
                     << "; this version has parameters that are the same on every replica, made of its tokens";
  }
  if (row(a).lowered == lowering::all) return;
  for (const op& o : t.ops) {
    if (o.over != a || o.kind->converts == conversion::none) continue;
    complaint c{o.kind->name, {}, o.from};
    c.begin() << "a conversion over " << name(a) << " inside a layer is not lowered in this version: set " << name(a)
              << "=1";
    refuse(out, 226) << c.text.view();
    return;
  }
}
constexpr void check_tokens_alone(report& out, const trace& t, const parallel_dims& d) {
  for (const weight_info& w : t.weights) {
    if (d.ep == 1 || w.holds[axis::ep] == I || w.trainable) continue;
    complaint c{"parameter", w.name, w.from};
    c.begin() << "it is frozen and sharded over ep=" << d.ep << "; this version trains the experts that it spreads over ranks: train it, or take ep=1";
    refuse(out, 226) << c.text.view();
  }
  for (const weight_info& w : t.weights) {
    if (d.ep == 1 || w.gradient[axis::ep] != P) continue;
    complaint c{"parameter", w.name, w.from};
    c.begin() << "its gradient is a pending sum over ep=" << d.ep << "; this version sums values over it, and no gradients of parameters: all_reduce what is made of it";
    refuse(out, 226) << c.text.view();
  }
  for (axis a : axes)
    if ((row(a).shares == part::sequences || row(a).shares == part::positions) && d.*row(a).degree > 1) check_tokens_alone(out, t, a);
}

/// The repeated layers of a model, and whether it has any entry of them; one that is there less than once; and what stands
/// alone before and after them.
struct block_count {
  int blocks = 0;
  bool repeats = false;
  std::string_view missing = "";
  alone_at ends{};
};
constexpr block_count count_blocks(const auto& model) {
  block_count n;
  each_entry(model, [&](const auto& e) {
    if constexpr (is_repeat<std::decay_t<decltype(e)>>) {
      n.blocks += count_of(e);
      n.repeats = true;
      n.ends.last = false;
      if (count_of(e) < 1) n.missing = layer_of(e).name;
    } else {
      (n.repeats ? n.ends.last : n.ends.first) = true;
    }
  });
  return n;
}

}  // namespace rankc::detail
