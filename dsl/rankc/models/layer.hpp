// SPDX-License-Identifier: Apache-2.0
// The parts that models are written with. A layer is a struct with a name and a constexpr `forward`. A model
// is a struct with `vocab` and `vocab_used`, with a `stack()` that returns `sequential(layers...)`, where
// layers may be repeated, and with a `check(report&)` of its numbers. A model without tokens has `static
// constexpr bool reads_tokens = false` in place of the vocabulary. If the model has `sizes()`, the rules
// of model sizes are checked before it is traced. Layers share a parameter if the model gives them the same
// parameter_handle: `t.parameter(table)`.
#pragma once
#include <rankc/base/square_root.hpp>
#include <rankc/ops/balance.hpp>
#include <rankc/rules/values/setting.hpp>
#include <rankc/ops/table.hpp>

#include <boost/hana/for_each.hpp>
#include <boost/hana/size.hpp>
#include <boost/hana/tuple.hpp>

#include <type_traits>
#include <utility>
#include <vector>

namespace rankc {

/// Standard deviation for the initial values of all weights except those at the end of a residual branch.
inline constexpr double initial_std = 0.02;
/// Standard deviation for the initial values of the projection at the end of each residual branch, in a model
/// with `layers` layers.
constexpr double residual_std(int layers) { return initial_std / square_root(2.0 * layers); }

// Ops are recorded in the order of their calls. A layer never calls two ops in the arguments of one function,
// because C++ does not define the order of their evaluation.

/// True if a model reads tokens. If not, its first layer reads the first input that the model declares.
constexpr bool reads_tokens(const auto& model) {
  if constexpr (requires { model.reads_tokens; }) return model.reads_tokens;
  else return true;
}

/// The properties of the plan that a layer depends on.
struct layer_context {
  dim tokens;     // tokens of a microbatch on all data-parallel ranks, sequences flattened
  int rows, seq;  // sequences per data-parallel rank and microbatch; tokens per sequence
  bool sequence_parallel;
  double loss_scale;             // 1 / tokens of a step
  bool exchanges_heads = false;  // Ulysses: all-to-all of heads over cp around attention
  int ring = 1;  // ranks of a ring in ring attention; with exchanges_heads a ring of Ulysses groups
  int ep = 1;    // ranks that shard the experts
  int etp = 1;   // ranks that shard the columns of each expert
  bool repeats_tokens = false;        // true: the ranks of ep have the same tokens; false: different tokens
  int token_ranks = 1;                // ranks that shard the tokens
  router_statistics routers{};        // the router statistics that layers keep
  std::vector<named_input> inputs{};  // the inputs of a step
  bool on_one_device = false;         // the layer gets the whole batch of a step
  bool token_weights = false;         // each label has a weight
  trace* traced = nullptr;            // the layer that is being traced
  /// Whether the loss is divided by the number of labels that count, or by the sum of their weights.
  constexpr bool counts_labels() const { return find_input(inputs, rankc::inputs::label_count.name) >= 0; }
  /// 1 / sequences of a step: the scale of a loss that has one term for each sequence.
  constexpr double sequence_scale() const { return loss_scale * seq; }
  constexpr bool has_documents() const { return find_input(inputs, rankc::inputs::starts.name) >= 0; }
  /// An input of the step, such as "targets".
  /// Errors: RC210 if the layer gets no input of this name.
  constexpr value input(std::string_view name, const char* file = __builtin_FILE(),
                        int line = __builtin_LINE()) const {
    return traced->read_input(name, {file, line});
  }
};

/// `count` layers of one kind. The parameters of layer N are named "layers.N.<parameter>".
template <class Layer>
struct repeat {
  int count;
  Layer layer;
};
template <class Layer>
repeat(int, Layer) -> repeat<Layer>;

/// `count` layers of two kinds; `is_second(layer)` selects the second kind. Parameters are named as in
/// `repeat`.
template <class First, class Second, class Choice>
struct mixed {
  int count;
  First first;
  Second second;
  Choice is_second;
};
template <class First, class Second, class Choice>
mixed(int, First, Second, Choice) -> mixed<First, Second, Choice>;

/// `count` alternating layers: layer N is the one at N modulo the number of kinds. Parameters are named as in
/// `repeat`.
template <class... Layers>
struct pattern {
  int count;
  boost::hana::tuple<Layers...> layers;
  constexpr pattern(int n, Layers... of) : count(n), layers(of...) {}
};

namespace detail {
template <class T>
inline constexpr bool is_mixed = false;
template <class First, class Second, class Choice>
inline constexpr bool is_mixed<mixed<First, Second, Choice>> = true;
template <class T>
inline constexpr bool is_pattern = false;
template <class... Layers>
inline constexpr bool is_pattern<pattern<Layers...>> = true;

/// Visits the runs of equal layers of `mixed`. `first_id` is the id of its first kind.
constexpr void each_run(const auto& entry, int first_id, auto visit) {
  for (int begin = 0, end = 0; begin < entry.count; begin = end) {
    const bool second = entry.is_second(begin);
    while (end < entry.count && entry.is_second(end) == second) ++end;
    if (second) visit(repeat{end - begin, entry.second}, first_id + 1);
    else visit(repeat{end - begin, entry.first}, first_id);
  }
  if (entry.count < 1) visit(repeat{entry.count, entry.first}, first_id);
}
/// Visits the layers of `pattern`, one at a time.
constexpr void each_turn(const auto& entry, int first_id, auto visit) {
  const int kinds = static_cast<int>(boost::hana::size(entry.layers));
  for (int n = 0; n < (entry.count < 1 ? 1 : entry.count); ++n) {
    int place = 0;
    boost::hana::for_each(entry.layers, [&](const auto& layer) {
      if (place == n % kinds) visit(repeat{entry.count < 1 ? entry.count : 1, layer}, first_id + place);
      ++place;
    });
  }
}
}  // namespace detail

/// Visits the entries of a model's stack in order: single layers, and each run of equal layers as a `repeat`.
/// Entries with one id have the same layer.
constexpr void each_entry(const auto& model, auto visit) {
  int id = 0;
  boost::hana::for_each(model.stack(), [&](const auto& entry) {
    using entry_type = std::decay_t<decltype(entry)>;
    if constexpr (detail::is_mixed<entry_type>) {
      detail::each_run(entry, id, visit);
      id += 2;
    } else if constexpr (detail::is_pattern<entry_type>) {
      detail::each_turn(entry, id, visit);
      id += static_cast<int>(boost::hana::size(entry.layers));
    } else {
      visit(entry, id++);
    }
  });
}

/// The layers of a model in forward order; `stack()` returns this.
template <class... Layers>
constexpr auto sequential(Layers... layers) {
  return boost::hana::tuple<Layers...>(layers...);
}

/// Enters a tensor-parallel region: all-gathers the tokens with sequence parallelism, else a no-op. Backward
/// reduce-scatters, or all-reduces, the partial gradients.
/// Shapes: x (tokens, hidden).
/// Errors: RC210.
constexpr value enter_tp(operand x, const layer_context& c) {
  return c.sequence_parallel ? all_gather(x, region_axis, c.tokens.name) : replicate(x, region_axis);
}
/// Leaves a tensor-parallel region: reduce-scatters partial sums along the tokens with sequence parallelism,
/// else all-reduces them.
/// Shapes: x (tokens, hidden).
/// Errors: RC210.
constexpr value leave_tp(operand x, const layer_context& c) {
  return c.sequence_parallel ? reduce_scatter(x, region_axis, c.tokens.name) : all_reduce(x, region_axis);
}

/// The weight of a column-parallel linear layer of x. Its output features are sharded over tp.
/// Shapes: x (tokens, in); result (out, in).
/// Errors: RC210.
constexpr value column_weight(trace& t, operand x, std::string_view weight, dim out,
                              double std = initial_std) {
  const dim in = t.of(x.v).shape[1];
  return t.parameter(weight, {out, in}, {{region_axis, out.name}}, initial::normal, std, x.from.file,
                     x.from.line);
}
/// x w^T with a new weight whose output features are sharded over tp. It follows enter_tp.
/// Shapes: x (tokens, in), weight (out, in); result (tokens, out), sharded along out.
/// Errors: RC210.
constexpr value column_parallel(trace& t, operand x, std::string_view weight, dim out,
                                double std = initial_std) {
  return linear(x, column_weight(t, x, weight, out, std));
}
/// x w^T with a new weight whose input features are sharded over tp, as x's are. leave_tp follows it.
/// Shapes: x (tokens, in), sharded along in; weight (out, in); result (tokens, out), a partial sum over tp.
/// Errors: RC210.
constexpr value row_parallel(trace& t, operand x, std::string_view weight, dim out, double std) {
  const dim in = t.of(x.v).shape[1];
  return linear(x, t.parameter(weight, {out, in}, {{region_axis, in.name}}, initial::normal, std, x.from.file,
                               x.from.line));
}

/// All-to-all over cp: from all heads of the rank's tokens to some heads of all tokens of its group.
/// Shapes: x (tokens, heads).
constexpr value heads_of_rank(operand x, const layer_context& c) {
  return all_to_all(x, axis::cp, x.v.in->of(x.v).shape[1].name, c.seq, c.ring);
}
/// All-to-all over cp: back to all heads of the rank's tokens.
/// Shapes: x (tokens, heads).
constexpr value tokens_of_rank(operand x, const layer_context& c) {
  return all_to_all(x, axis::cp, c.tokens.name, c.seq, c.ring);
}

/// Attention within whole sequences or within documents, around a ring if the plan has one. `scores`: the
/// scores of sinks, if the heads have sinks.
/// Shapes: q (tokens, heads), k and v (tokens, kv_heads), scores (tokens, number of heads).
/// Errors: RC210.
constexpr value attention(operand q, value k, value v, const layer_context& c,
                          const attention_setting& by = {}, value scores = {}) {
  const auto attend = [&] {
    if (c.ring > 1)
      return c.has_documents() ? ring_attention(q, k, v, c.input("starts"), c.rows, c.seq, c.ring, by)
                               : ring_attention(q, k, v, c.rows, c.seq, c.ring, by);
    return c.has_documents() ? attention(q, k, v, c.input("starts"), c.rows, c.seq, by)
                             : attention(q, k, v, c.rows, c.seq, by);
  };
  const value o = attend();
  return scores.in ? add_sinks({o, q.from.file, q.from.line}, scores) : o;
}
/// Learned positions in the sequence, or in the token's document.
/// Shapes: x (tokens, width), table (seq, width).
/// Errors: RC210.
constexpr value position(operand x, value table, const layer_context& c) {
  return c.has_documents() ? position(x, table, c.input("starts"), c.rows, c.seq) : position(x, table, c.seq);
}

/// Self-attention with the plan's form of context parallelism: keys and values are all-gathered, sent around
/// a ring, or heads are exchanged (Ulysses). Ulysses groups may form a ring. `sinks` is a parameter, if the
/// heads have sinks.
/// Shapes: q (tokens, heads), k and v (tokens, kv_heads), sinks (number of heads).
/// Errors: RC210, RC216.
constexpr value self_attention(operand q, operand k, operand v, const layer_context& c,
                               const attention_setting& by = {}, value sinks = {}) {
  value scores = sinks.in ? sink_scores(q, sinks) : value{};
  if (c.exchanges_heads) {
    const value queries = heads_of_rank(q, c), keys = heads_of_rank(k, c), values = heads_of_rank(v, c);
    if (scores.in) scores = heads_of_rank({scores, q.from.file, q.from.line}, c);
    return tokens_of_rank(attention({queries, q.from.file, q.from.line}, keys, values, c, by, scores), c);
  }
  if (c.ring > 1) return attention(q, k.v, v.v, c, by, scores);
  value keys = all_gather(k, axis::cp, c.tokens.name);
  value values = all_gather(v, axis::cp, c.tokens.name);
  return attention(q, keys, values, c, by, scores);
}

/// The weight of each token's label, for a loss of your own. It needs token_weights.
/// Shapes: (tokens).
/// Errors: RC210.
constexpr value token_weights(const layer_context& c) { return c.input(inputs::weights.name); }

/// The number of labels of a step that are not ignored, or the sum of their weights, for a loss of your own.
/// It needs ignored_label or token_weights.
/// Shapes: (1).
/// Errors: RC210.
constexpr value label_count(const layer_context& c) {
  if (!c.on_one_device) return c.input(inputs::label_count.name);
  const value targets = c.input(inputs::targets.name);
  return c.token_weights ? sum_weights(targets, token_weights(c)) : count_labels(targets);
}

/// The loss of the targets: the mean cross entropy over the labels of a step that are not ignored, weighted
/// by the token weights if the plan has them, times a factor. The vocabulary may be sharded over the region
/// axis.
/// Shapes: logits (tokens, vocab).
/// Errors: RC210, RC223, RC260.
constexpr value cross_entropy(operand logits, const layer_context& c, double factor = 1) {
  const value targets = c.input("targets", logits.from.file, logits.from.line);
  if (!c.counts_labels()) return cross_entropy(logits, targets, region_axis, factor * c.loss_scale);
  if (!c.token_weights) return masked_cross_entropy(logits, targets, label_count(c), region_axis, factor);
  const value weights = token_weights(c);
  return weighted_cross_entropy(logits, targets, weights, label_count(c), region_axis, factor);
}

/// The mean of each sequence over its tokens. Over cp the means are summed, and each rank gets those of an
/// equal number of whole sequences. Over tp they are replicated (R).
/// Shapes: x (tokens, width), as between layers; result (sequences, width).
/// Errors: RC202 if cp does not divide the sequences of a microbatch; RC210.
constexpr value sequence_mean(operand x, const layer_context& c) {
  const operand tokens = c.sequence_parallel ? operand{enter_tp(x, c), x.from.file, x.from.line} : x;
  const value sums = sequence_mean(tokens, c.rows, c.seq);
  const value means = reduce_scatter({sums, x.from.file, x.from.line}, axis::cp, sequence_dim);
  return c.sequence_parallel ? means : replicate({means, x.from.file, x.from.line}, region_axis);
}

/// The weight of the embedding or of the head, sharded along the vocabulary over tp. A model with tied
/// weights gives one handle to both.
/// Shapes: (vocab, hidden).
constexpr parameter_handle token_table(dim vocab, dim hidden, std::string_view name = "wte",
                                       const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return {name, {vocab, hidden}, {{region_axis, vocab.name}}, initial::normal, initial_std, file, line};
}

/// A size of a model, with the name that a message shows.
struct named_size {
  std::string_view name;
  int size;
};

/// RC206: a size is below 1. Returns true if all sizes are valid.
constexpr bool check_sizes(report& out, std::initializer_list<named_size> sizes) {
  bool ok = true;
  for (const named_size& s : sizes)
    if (s.size < 1) {
      refuse(out, 206) << s.name << "=" << s.size << "; a size is at least 1";
      ok = false;
    }
  return ok;
}

}  // namespace rankc
