// SPDX-License-Identifier: Apache-2.0
// What layers of a model are made with. A layer is a struct with a name and a constexpr `forward`; a model is
// a struct whose `stack()` returns `sequential(layers...)`, some of them repeated, whose `check(report&)`
// judges its sizes, and which has `vocab` and `vocab_used`; one that also offers its `sizes()` is held to the
// rules of models before it is traced. Layers that stand alone have a parameter in common where the model
// hands them one parameter_handle: `t.parameter(table)`.
#pragma once
#include <rankc/base/square_root.hpp>
#include <rankc/ops/balance.hpp>
#include <rankc/rules/values/setting.hpp>
#include <rankc/ops/table.hpp>

#include <boost/hana/for_each.hpp>
#include <boost/hana/tuple.hpp>

#include <type_traits>
#include <utility>

namespace rankc {

// Ops are recorded in the order in which they are called: a layer never makes two of them as arguments of one
// call, whose order is the compiler's.

/// What a layer needs to know of the plan it stands in.
struct layer_context {
  dim tokens;     // of a microbatch on all data-parallel ranks, sequences flattened
  int rows, seq;  // sequences per data-parallel rank and microbatch, and their length
  bool sequence_parallel;
  double loss_scale;             // 1 / tokens of a step
  value targets;                 // the next token of each token; read by the last layer
  bool exchanges_heads = false;  // over cp, before attention and after it; else keys and values are gathered
  int ring = 1;  // or are handed on between so many ranks; of both, between groups that exchange heads
  int ep = 1;    // ranks that experts are spread over
  int etp = 1;   // that share out the columns of each of these
  bool repeats_tokens = false;  // ranks of ep have the same tokens; else each has its own
  int token_ranks = 1;          // that share out the tokens
  router_statistics routers{};  // those that layers keep
  value
      starts{};  // of each token of whole sequences, where its document begins; none where sequences are one
  constexpr bool has_documents() const { return starts.in != nullptr; }
};

/// `count` layers of the same kind; layer N's parameters are named "layers.N.<parameter>".
template <class Layer>
struct repeat {
  int count;
  Layer layer;
};
template <class Layer>
repeat(int, Layer) -> repeat<Layer>;

/// `count` layers of two kinds, of which `is_second(number)` says which are of the second; named as repeated
/// ones are.
template <class First, class Second, class Choice>
struct mixed {
  int count;
  First first;
  Second second;
  Choice is_second;
};
template <class First, class Second, class Choice>
mixed(int, First, Second, Choice) -> mixed<First, Second, Choice>;

namespace detail {
template <class T>
inline constexpr bool is_mixed = false;
template <class First, class Second, class Choice>
inline constexpr bool is_mixed<mixed<First, Second, Choice>> = true;
}  // namespace detail

/// Visit the entries of a model's stack in order: layers that stand alone, and runs of like ones, each as
/// `repeat`.
constexpr void each_entry(const auto& model, auto visit) {
  boost::hana::for_each(model.stack(), [&](const auto& entry) {
    if constexpr (detail::is_mixed<std::decay_t<decltype(entry)>>) {
      for (int begin = 0, end = 0; begin < entry.count; begin = end) {
        const bool second = entry.is_second(begin);
        while (end < entry.count && entry.is_second(end) == second) ++end;
        if (second) visit(repeat{end - begin, entry.second});
        else visit(repeat{end - begin, entry.first});
      }
      if (entry.count < 1) visit(repeat{entry.count, entry.first});
    } else {
      visit(entry);
    }
  });
}

/// The layers of a model, in the order in which a token goes through them: what `stack()` returns.
template <class... Layers>
constexpr auto sequential(Layers... layers) {
  return boost::hana::tuple<Layers...>(layers...);
}

/// Into a tensor-parallel region: every rank gets all tokens, and makes its part of their gradient.
constexpr value enter_tp(operand x, const layer_context& c) {
  return c.sequence_parallel ? all_gather(x, region_axis, c.tokens.name) : replicate(x, region_axis);
}
/// Out of it: the sum over the ranks, sharded along the tokens or the same on every rank.
constexpr value leave_tp(operand x, const layer_context& c) {
  return c.sequence_parallel ? reduce_scatter(x, region_axis, c.tokens.name) : all_reduce(x, region_axis);
}

/// x w^T with a new weight of (out, features of x), the output features sharded over tp; and, in front of
/// leave_tp, with one whose input features are sharded like x's.
constexpr value column_parallel(trace& t, operand x, std::string_view weight, dim out, double std = 0.02) {
  const dim in = t.of(x.v).shape[1];
  return linear(x, t.parameter(weight, {out, in}, {{region_axis, out.name}}, initial::normal, std,
                               x.from.file, x.from.line));
}
constexpr value row_parallel(trace& t, operand x, std::string_view weight, dim out, double std) {
  const dim in = t.of(x.v).shape[1];
  return linear(x, t.parameter(weight, {out, in}, {{region_axis, in.name}}, initial::normal, std, x.from.file,
                               x.from.line));
}

/// Of some heads all tokens that a group has of each sequence, and of a rank's tokens all heads.
constexpr value heads_of_rank(operand x, const layer_context& c) {
  return all_to_all(x, axis::cp, x.v.in->of(x.v).shape[1].name, c.seq, c.ring);
}
constexpr value tokens_of_rank(operand x, const layer_context& c) {
  return all_to_all(x, axis::cp, c.tokens.name, c.seq, c.ring);
}

/// Attention to all of a sequence, or to the token's document, of the keys of all ranks or around a ring.
constexpr value attention(operand q, value k, value v, const layer_context& c) {
  if (c.ring > 1)
    return c.has_documents() ? ring_attention(q, k, v, c.starts, c.rows, c.seq, c.ring)
                             : ring_attention(q, k, v, c.rows, c.seq, c.ring);
  return c.has_documents() ? attention(q, k, v, c.starts, c.rows, c.seq) : attention(q, k, v, c.rows, c.seq);
}
/// Learned positions in the sequence, or in the token's document.
constexpr value position(operand x, value table, const layer_context& c) {
  return c.has_documents() ? position(x, table, c.starts, c.rows, c.seq) : position(x, table, c.seq);
}

/// Attention over whole sequences: context-parallel ranks gather keys and values, hand them on (ring),
/// exchange heads (Ulysses), or exchange heads in groups that hand on keys and values.
constexpr value self_attention(operand q, operand k, operand v, const layer_context& c) {
  if (c.exchanges_heads) {
    const value queries = heads_of_rank(q, c), keys = heads_of_rank(k, c), values = heads_of_rank(v, c);
    return tokens_of_rank(attention({queries, q.from.file, q.from.line}, keys, values, c), c);
  }
  if (c.ring > 1) return attention(q, k.v, v.v, c);
  value keys = all_gather(k, axis::cp, c.tokens.name);
  value values = all_gather(v, axis::cp, c.tokens.name);
  return attention(q, keys, values, c);
}

/// A table of a row for each token, sharded along them: the embedding's, the head's, or that of both.
constexpr parameter_handle token_table(dim vocab, dim hidden, std::string_view name = "wte",
                                       const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return {name, {vocab, hidden}, {{region_axis, vocab.name}}, initial::normal, 0.02, file, line};
}

struct named_size {
  std::string_view name;
  int size;
};

/// RC206: sizes that make no tensor. Says whether all are sizes.
constexpr bool check_sizes(report& out, std::initializer_list<named_size> sizes) {
  bool ok = true;
  for (const named_size& s : sizes)
    if (s.size < 1) {
      refuse(out, 206) << s.name << "=" << s.size << "; a size is at least 1";
      ok = false;
    }
  return ok;
}

/// Standard deviation of the projections that end a residual branch, of `layers` layers.
/// Source: GPT-2 (Radford et al. 2019), section 2.3: 0.02 / sqrt(2 layers).
constexpr double residual_std(int layers) { return 0.02 / square_root(2.0 * layers); }

}  // namespace rankc
