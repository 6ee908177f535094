// SPDX-License-Identifier: Apache-2.0
// RC210 to RC214: layers whose values do not fit. Each is a mistake that authors of layers make; the message
// starts with the line of the op.
#include "reject.hpp"

inline constexpr dim hidden{"hidden", 32}, ffn{"ffn", 64}, heads{"heads", 32, 8, "head_dim"},
    vocab{"vocab", 64};

/// One layer between an embedding and a head, on two tp ranks.
template <class Layer, int Times = 2>
struct around {
  int vocab = 64, vocab_used = 0;
  constexpr void check(report&) const {}
  constexpr auto stack() const {
    const parameter_handle table = token_table(::vocab, hidden);
    return sequential(models::embedding{table, true}, repeat{Times, Layer{}},
                      models::head{.table = table, .norm = models::norm_kind::layer});
  }
};
template <class Model, bool Sp = false>
inline constexpr plan modelled{.model = Model{},
                               .dims = parallel_dims{.world = 2, .tp = 2, .sequence_parallel = Sp},
                               .schedule = one_microbatch,
                               .recipe = recipe,
                               .cluster = clusters::cpu};
template <class Layer, bool Sp = false>
inline constexpr auto layered = modelled<around<Layer>, Sp>;

inline constexpr bool faulty = fault(true, false);

/// The base of the layers below, and their parameters.
struct layer {
  static constexpr std::string_view name = "mine";
};
constexpr value whole(trace& t, std::string_view name, dim out = ffn, dim in = hidden) {
  return t.parameter(name, {out, in}, {}, initial::normal, 0.02);  // @declared_by_whole@
}
constexpr value column(trace& t, std::string_view name, dim out = ffn, dim in = hidden) {
  return t.parameter(name, {out, in}, {{axis::tp, out.name}}, initial::normal, 0.02);  // @order_of_column@
}
constexpr value row(trace& t, std::string_view name, dim out = hidden, dim in = ffn) {
  return t.parameter(name, {out, in}, {{axis::tp, in.name}}, initial::normal, 0.02);
}
constexpr value vector(trace& t, std::string_view name, dim of = hidden) {
  return t.parameter(name, {of}, {}, initial::zeros);
}
/// The two projections of a feed-forward layer, without leave_tp.
constexpr value project(trace& t, value x, const layer_context& c) {
  value y = gelu(linear(enter_tp(x, c), column(t, "w1")));
  return linear(y, row(t, "w2"));
}

// ---- reductions

struct missing_reduction : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value y = project(t, x, c);
    if (!faulty) y = leave_tp(y, c);
    return x + gelu(y);  // @missing_reduction@
  }
};
inline constexpr auto missing_reduction_before_a_nonlinear_op = layered<missing_reduction>;
// error: RC210: typed.cpp:@missing_reduction@: gelu: the value is a pending sum (P) over tp; expected R, I or
//        V: reduce it first (all_reduce, reduce_scatter)
static_assert(valid<missing_reduction_before_a_nonlinear_op>);

struct silu_of_pending : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value gate = project(t, x, c);
    if (!faulty) gate = leave_tp(gate, c);
    return x + swiglu(gate, gate);  // @silu_of_pending@
  }
};
inline constexpr auto silu_of_a_pending_sum = layered<silu_of_pending>;
// error: RC210: typed.cpp:@silu_of_pending@: swiglu: gate is a pending sum (P) over tp; expected R, I or V:
//        reduce it first (all_reduce, reduce_scatter)
static_assert(valid<silu_of_a_pending_sum>);

struct norm_of_pending : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value y = project(t, x, c);
    if (!faulty) y = leave_tp(y, c);
    return x + rms_norm(y, vector(t, "gain"));  // @norm_of_pending@
  }
};
inline constexpr auto norm_of_a_pending_sum = layered<norm_of_pending>;
// error: RC210: typed.cpp:@norm_of_pending@: rms_norm 'gain': the value is a pending sum (P) over tp;
//        expected R, I or V: reduce it first (all_reduce, reduce_scatter)
static_assert(valid<norm_of_a_pending_sum>);

struct bias_before_reduction : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value y = project(t, x, c);
    if (!faulty) y = leave_tp(y, c);
    y = bias(y, vector(t, "b2"));  // @bias_before_reduction@
    return x + y;
  }
};
inline constexpr auto bias_on_a_pending_sum = layered<bias_before_reduction>;
// error: RC210: typed.cpp:@bias_before_reduction@: bias 'b2': the value is a pending sum (P) over tp;
//        expected R, I or V (each rank would add the bias): reduce it first (all_reduce, reduce_scatter)
static_assert(valid<bias_on_a_pending_sum>);

struct residual_before_reduction : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value y = project(t, x, c);
    if (!faulty) y = leave_tp(y, c);
    return x + y;  // @residual_before_reduction@
  }
};
inline constexpr auto residual_plus_a_pending_sum = layered<residual_before_reduction, true>;
// error: RC210: typed.cpp:@residual_before_reduction@: add: the right operand is a pending sum (P) over tp;
//        expected R, I or V, or two pending sums: reduce it first (all_reduce, reduce_scatter)
static_assert(valid<residual_plus_a_pending_sum>);

struct reduced_twice : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value y = leave_tp(project(t, x, c), c);
    if (faulty) y = all_reduce(y, axis::tp);  // @reduced_twice@
    return x + y;
  }
};
inline constexpr auto all_reduce_of_no_pending_sum = layered<reduced_twice>;
// error: RC210: typed.cpp:@reduced_twice@: all_reduce: the value is invariant (I) over tp; expected a pending
//        sum (P): there is nothing to reduce
static_assert(valid<all_reduce_of_no_pending_sum>);

struct maximum_of_sums : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value y = project(t, x, c);
    y = faulty ? all_reduce_max(y, axis::tp) : all_reduce(y, axis::tp);  // @maximum_of_sums@
    return x + y;
  }
};
inline constexpr auto maximum_of_a_pending_sum = layered<maximum_of_sums>;
// error: RC210: typed.cpp:@maximum_of_sums@: all_reduce_max: the reduction that is pending over tp is a sum:
//        take it with all_reduce
static_assert(valid<maximum_of_a_pending_sum>);

struct gathered_instead_of_reduced : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value y = project(t, x, c);
    y = faulty ? all_gather(y, axis::tp, "hidden") : all_reduce(y, axis::tp);  // @gathered_instead@
    return x + y;
  }
};
inline constexpr auto all_gather_of_a_pending_sum = layered<gathered_instead_of_reduced>;
// error: RC210: typed.cpp:@gathered_instead@: all_gather: the value is a pending sum (P) over tp; expected
//        sharded along the gathered dim (V): there is nothing to gather
static_assert(valid<all_gather_of_a_pending_sum>);

// ---- regions

struct forgotten_enter : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value h = faulty ? x : enter_tp(x, c);
    h = gelu(linear(h, column(t, "w1")));  // @forgotten_enter@
    return x + leave_tp(linear(h, row(t, "w2")), c);
  }
};
inline constexpr auto linear_of_invariant_without_enter_tp = layered<forgotten_enter>;
// error: RC210: typed.cpp:@forgotten_enter@: linear 'w1': the value is invariant (I) over tp; expected
//        replicated (R), the weight being sharded along its output features: convert it first (replicate: its
//        gradient is then all-reduced)
static_assert(valid<linear_of_invariant_without_enter_tp>);
inline constexpr auto linear_of_sharded_tokens_without_enter_tp = layered<forgotten_enter, true>;
// error: RC210: typed.cpp:@forgotten_enter@: linear 'w1': the value is sharded along tokens (V) over tp;
//        expected replicated (R), the weight being sharded along its output features: all_gather it first
static_assert(valid<linear_of_sharded_tokens_without_enter_tp>);

struct wrong_conversion_in : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value h = faulty ? replicate(x, axis::tp) : enter_tp(x, c);  // @wrong_conversion_in@
    h = gelu(linear(h, column(t, "w1")));
    return x + leave_tp(linear(h, row(t, "w2")), c);
  }
};
inline constexpr auto replicate_of_sharded_tokens = layered<wrong_conversion_in, true>;
// error: RC210: typed.cpp:@wrong_conversion_in@: replicate: the value is sharded along tokens (V) over tp;
//        expected invariant (I): there is nothing to convert
static_assert(valid<replicate_of_sharded_tokens>);

struct row_before_column : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value w1 = faulty ? row(t, "w1", ffn, hidden) : column(t, "w1");
    value h = linear(enter_tp(x, c), w1);  // @row_before_column@
    return x + leave_tp(linear(h, row(t, "w2")), c);
  }
};
inline constexpr auto row_parallel_linear_of_a_whole_value = layered<row_before_column>;
// error: RC210: typed.cpp:@row_before_column@: linear 'w1': the value is replicated (R) over tp; expected
//        sharded like the weight's input features: feed it a column-parallel result
static_assert(valid<row_parallel_linear_of_a_whole_value>);

struct whole_after_column : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value h = linear(enter_tp(x, c), column(t, "w1"));
    value w2 = faulty ? whole(t, "w2", hidden, ffn) : row(t, "w2");
    h = linear(h, w2);  // @whole_after_column@
    return x + leave_tp(h, c);
  }
};
inline constexpr auto whole_linear_of_a_column_parallel_result = layered<whole_after_column>;
// error: RC210: typed.cpp:@whole_after_column@: linear 'w2': the value is sharded along ffn (V) over tp;
//        expected the weight to be sharded along it too: all_gather it, or shard the weight
static_assert(valid<whole_linear_of_a_column_parallel_result>);

struct scattered_without_sp : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value y = project(t, x, c);
    y = faulty ? reduce_scatter(y, axis::tp, "tokens") : all_reduce(y, axis::tp);
    return x + y;  // @scattered_without_sp@
  }
};
inline constexpr auto invariant_plus_sharded = layered<scattered_without_sp>;
// error: RC210: typed.cpp:@scattered_without_sp@: add: the left operand is invariant (I) and the right
//        operand sharded along tokens (V) over tp; expected one placement: use the matching conversion
//        (all_reduce gives I, reduce_scatter gives V)
static_assert(valid<invariant_plus_sharded>);

struct outer_axis_first : layer {
  constexpr value forward(trace&, value x, const layer_context& c) const {
    if (faulty) return all_gather(x, axis::cp, c.tokens.name);  // @outer_axis_first@
    return gelu(x);
  }
};
inline constexpr auto gather_of_the_outer_axis_first = layered<outer_axis_first, true>;
// error: RC210: typed.cpp:@outer_axis_first@: all_gather: the value is sharded along tokens over tp too,
//        inside cp: convert it over tp first
static_assert(valid<gather_of_the_outer_axis_first>);

struct no_such_dim : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value h = all_gather(x, axis::tp, faulty ? "token" : "tokens");  // @no_such_dim@
    return x + leave_tp(linear(linear(h, column(t, "w1")), row(t, "w2")), c);
  }
};
inline constexpr auto gather_along_no_such_dim = layered<no_such_dim, true>;
// error: RC210: typed.cpp:@no_such_dim@: all_gather: the value is (tokens=32, hidden=32) and has no dim
//        'token'
static_assert(valid<gather_along_no_such_dim>);

// ---- attention and positions

template <bool Rope>
struct attention_layer : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value h = enter_tp(x, c);
    value q = linear(faulty ? x : h, faulty ? whole(t, "wq", heads) : column(t, "wq", heads));
    value k = linear(h, column(t, "wk", heads));
    if (Rope) q = rope(q, c.seq, 1e4);     // @rope_of_parts@
    value y = self_attention(q, k, k, c);  // @attention_of_parts@
    return x + leave_tp(linear(y, row(t, "wo", hidden, heads)), c);
  }
};
inline constexpr auto attention_over_parts_of_sequences = layered<attention_layer<false>, true>;
// error: RC210: typed.cpp:@attention_of_parts@: attention: q is sharded along tokens (V) over tp; expected
//        whole sequences on each rank: all_gather it over the tokens first
static_assert(valid<attention_over_parts_of_sequences>);
inline constexpr auto rope_over_parts_of_sequences = layered<attention_layer<true>, true>;
// error: RC210: typed.cpp:@rope_of_parts@: rope: the value is sharded along tokens (V) over tp; expected
//        whole sequences on each rank: all_gather it over the tokens first
static_assert(valid<rope_over_parts_of_sequences>);

struct keys_of_parts : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value h = faulty ? x : enter_tp(x, c);
    value q = linear(h, faulty ? whole(t, "wq", heads) : column(t, "wq", heads));
    value y = self_attention(q, q, q, c);  // @keys_of_parts@
    return x + leave_tp(linear(y, row(t, "wo", hidden, heads)), c);
  }
};
inline constexpr auto attention_to_parts_of_sequences = layered<keys_of_parts, true>;
// error: RC210: typed.cpp:@keys_of_parts@: all_gather: the value is sharded along tokens over tp too, inside
//        cp: convert it over tp first
static_assert(valid<attention_to_parts_of_sequences>);

struct heads_that_differ : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    const dim kv{"kv_heads", faulty ? 24 : 16, 8, "head_dim"};
    value h = enter_tp(x, c);
    value q = linear(h, whole(t, "wq", heads));
    value k = linear(h, whole(t, "wk", kv));
    value y = self_attention(q, k, k, c);  // @heads_that_differ@
    y = all_reduce(linear(linear(y, column(t, "w1", ffn, heads)), row(t, "w2")), axis::tp);
    return x + y;
  }
};
inline constexpr auto kv_heads_that_do_not_divide_heads = layered<heads_that_differ>;
// error: RC210: typed.cpp:@heads_that_differ@: attention: q, k and v have 4, 3 and 3 heads of 8, 8 and 8
//        elements; expected heads of one size in q and k, as many heads in v as in k, and their number to
//        divide that in q
static_assert(valid<kv_heads_that_do_not_divide_heads>);

struct rope_without_heads : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value q = linear(enter_tp(x, c), column(t, "w1", faulty ? ffn : heads));
    q = rope(q, c.seq, 1e4);  // @rope_without_heads@
    return x + leave_tp(linear(q, row(t, "w2", hidden, faulty ? ffn : heads)), c);
  }
};
inline constexpr auto rope_of_a_dim_without_heads = layered<rope_without_heads>;
// error: RC210: typed.cpp:@rope_without_heads@: rope: the value's last dim is ffn=64 in units of 1; expected
//        heads of an even size, dim{name, size, head_dim, 'head_dim'}
static_assert(valid<rope_of_a_dim_without_heads>);

struct positions_of_another_length : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value table = whole(t, "table", dim{"positions", faulty ? 4 : c.seq}, hidden);
    return position(x, table, c.seq);  // @positions_of_another_length@
  }
};
inline constexpr auto position_table_of_another_length = layered<positions_of_another_length>;
// error: RC210: typed.cpp:@positions_of_another_length@: position 'table': the table is (positions=4,
//        hidden=32); expected a row for each position of a sequence, (positions=8, hidden=32)
static_assert(valid<position_table_of_another_length>);

// ---- shapes

struct wrong_last_dim : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    // @wrong_last_dim@
    value y = linear(enter_tp(x, c), column(t, "w1", ffn, faulty ? dim{"other", 64} : hidden));
    return x + leave_tp(linear(y, row(t, "w2")), c);
  }
};
inline constexpr auto linear_of_a_wrong_last_dim = layered<wrong_last_dim>;
// error: RC210: typed.cpp:@wrong_last_dim@: linear 'w1': the value's last dim is hidden=32; expected the
//        weight's other=64
static_assert(valid<linear_of_a_wrong_last_dim>);

struct gain_of_another_dim : layer {
  constexpr value forward(trace& t, value x, const layer_context&) const {
    return x + rms_norm(x, vector(t, "gain", faulty ? ffn : hidden));  // @gain_of_another_dim@
  }
};
inline constexpr auto norm_with_a_gain_of_another_dim = layered<gain_of_another_dim>;
// error: RC210: typed.cpp:@gain_of_another_dim@: rms_norm 'gain': the weight is (ffn=64); expected one number
//        for each feature, (hidden=32)
static_assert(valid<norm_with_a_gain_of_another_dim>);

struct sharded_gain : layer {
  constexpr value forward(trace& t, value x, const layer_context&) const {
    value gain =
        faulty ? t.parameter("gain", {hidden}, {{axis::tp, "hidden"}}, initial::ones) : vector(t, "gain");
    return x + rms_norm(x, gain);  // @sharded_gain@
  }
};
inline constexpr auto norm_with_a_sharded_gain = layered<sharded_gain>;
// error: RC210: typed.cpp:@sharded_gain@: rms_norm 'gain': the weight is sharded along hidden (V) over tp;
//        expected the same on every rank (I): declare it without a shard
static_assert(valid<norm_with_a_sharded_gain>);

struct bias_of_another_dim : layer {
  constexpr value forward(trace& t, value x, const layer_context&) const {
    return x + bias(x, vector(t, "b", faulty ? ffn : hidden));  // @bias_of_another_dim@
  }
};
inline constexpr auto bias_with_another_dim = layered<bias_of_another_dim>;
// error: RC210: typed.cpp:@bias_of_another_dim@: bias 'b': the weight is (ffn=64); expected one number for
//        each feature, (hidden=32)
static_assert(valid<bias_with_another_dim>);

struct whole_bias_of_a_sharded_value : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value b = faulty ? vector(t, "b1", ffn) : t.parameter("b1", {ffn}, {{axis::tp, "ffn"}}, initial::zeros);
    value y = bias(linear(enter_tp(x, c), column(t, "w1")), b);  // @whole_bias@
    return x + leave_tp(linear(y, row(t, "w2")), c);
  }
};
inline constexpr auto whole_bias_on_a_column_parallel_result = layered<whole_bias_of_a_sharded_value>;
// error: RC210: typed.cpp:@whole_bias@: bias 'b1': the value is sharded along ffn (V) over tp; expected the
//        sharding of the bias: shard both along the same features
static_assert(valid<whole_bias_on_a_column_parallel_result>);

struct sum_of_shapes : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value y = linear(x, whole(t, "w1", faulty ? ffn : hidden));
    (void)c;
    return x + y;  // @sum_of_shapes@
  }
};
inline constexpr auto sum_of_different_shapes = layered<sum_of_shapes>;
// error: RC210: typed.cpp:@sum_of_shapes@: add: the left operand is (tokens=32, hidden=32) and the right
//        operand (tokens=32, ffn=64); expected two of one shape
static_assert(valid<sum_of_different_shapes>);

struct embedding_of_features : layer {
  constexpr value forward(trace& t, value x, const layer_context&) const {
    if (faulty) return embedding(x, whole(t, "table", vocab));  // @embedding_of_features@
    return linear(x, whole(t, "table", hidden));
  }
};
inline constexpr auto embedding_of_what_are_no_ids = layered<embedding_of_features>;
// error: RC210: typed.cpp:@embedding_of_features@: embedding 'table': the value is (tokens=32, hidden=32);
//        expected token ids, (tokens)
static_assert(valid<embedding_of_what_are_no_ids>);

// ---- parameters

struct shard_along_no_dim : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    // @shard_along_no_dim@
    value w1 = t.parameter("w1", {ffn, hidden}, {{axis::tp, faulty ? "ff" : "ffn"}}, initial::ones);
    return x + leave_tp(linear(linear(enter_tp(x, c), w1), row(t, "w2")), c);
  }
};
inline constexpr auto parameter_sharded_along_no_dim = layered<shard_along_no_dim>;
// error: RC210: typed.cpp:@shard_along_no_dim@: parameter 'w1': it is (ffn=64, hidden=32) and has no dim 'ff'
//        to shard over tp
static_assert(valid<parameter_sharded_along_no_dim>);

struct declared_twice : layer {
  constexpr value forward(trace& t, value x, const layer_context&) const {
    value y = linear(x, whole(t, "w", hidden));
    value again = t.parameter(faulty ? "w" : "w2", {hidden, hidden}, {}, initial::ones);  // @declared_again@
    return x + linear(y, again);
  }
};
inline constexpr auto parameter_declared_twice = layered<declared_twice>;
// error: RC210: typed.cpp:@declared_again@: parameter 'w': line @declared_by_whole@ of this layer declares
//        one of that name; use that one twice, or take another name
static_assert(valid<parameter_declared_twice>);

struct unused_parameter : layer {
  constexpr value forward(trace& t, value x, const layer_context&) const {
    value b = t.parameter("b", {hidden}, {}, initial::zeros);  // @unused_parameter@
    return faulty ? gelu(x) : bias(x, b);
  }
};
inline constexpr auto parameter_without_gradient = layered<unused_parameter>;
// error: RC210: typed.cpp:@unused_parameter@: parameter 'b': nothing that it makes reaches the layer's
//        result, so that it has no gradient; use it, or leave it out
static_assert(valid<parameter_without_gradient>);

struct one_weight_at_two_placements : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value gain = vector(t, "gain");
    value h = rms_norm(enter_tp(rms_norm(x, gain), c), faulty ? gain : vector(t, "gain2"));  // @one_weight@
    return x + leave_tp(linear(linear(h, column(t, "w1")), row(t, "w2")), c);
  }
};
inline constexpr auto one_weight_on_values_of_two_placements = layered<one_weight_at_two_placements>;
// error: RC210: typed.cpp:@one_weight@: rms_norm_dw 'gain': the weight's gradient is invariant (I) over tp
//        here, but at another use it is a pending sum (P): use the weight on values of one placement
static_assert(valid<one_weight_on_values_of_two_placements>);

// ---- losses

template <bool Gather>
struct head : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value h = enter_tp(x, c);
    value table = t.parameter("out", {::vocab, hidden}, {{axis::tp, "vocab"}}, initial::ones);
    if (!faulty) return cross_entropy(linear(h, table), c.input("targets"), axis::tp, c.loss_scale);
    value logits = linear(Gather ? x : h, whole(t, "whole", ::vocab));
    return cross_entropy(logits, c.input("targets"), axis::tp, c.loss_scale);  // @logits@
  }
};
template <class Last>
struct ending_in {
  int vocab = 64, vocab_used = 0;
  constexpr void check(report&) const {}
  constexpr auto stack() const {
    return sequential(models::embedding{token_table(::vocab, hidden)},
                      repeat{1, models::block{{hidden, heads, heads, {1}, 1e4}, ffn}}, Last{});
  }
};
inline constexpr auto loss_of_replicated_logits = modelled<ending_in<head<false>>>;
// error: RC210: typed.cpp:@logits@: row_max: the value is replicated (R) over tp; expected invariant (I), or
//        sharded along the vocabulary (V): shard the weight that makes it, or do not replicate what it is
//        made from (each rank would count the loss)
static_assert(valid<loss_of_replicated_logits>);
inline constexpr auto loss_of_parts_of_the_tokens = modelled<ending_in<head<true>>, true>;
// error: RC210: typed.cpp:@logits@: row_max: the value is sharded along tokens (V) over tp; expected all
//        tokens, as the targets are: all_gather it over the tokens first
static_assert(valid<loss_of_parts_of_the_tokens>);

struct gelu_of_loss : head<false> {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value table = t.parameter("out", {::vocab, hidden}, {{axis::tp, "vocab"}}, initial::ones);
    value loss = cross_entropy(linear(enter_tp(x, c), table), c.input("targets"), axis::tp, c.loss_scale);
    return faulty ? gelu(loss) : loss;  // @gelu_of_loss@
  }
};
inline constexpr auto op_on_a_loss = modelled<ending_in<gelu_of_loss>>;
// error: RC210: typed.cpp:@gelu_of_loss@: gelu: the value is (); expected rows of features, (tokens,
//        features)
static_assert(valid<op_on_a_loss>);

// ---- layers

struct widening : layer {
  constexpr value forward(trace& t, value x, const layer_context&) const {
    value y = linear(x, whole(t, "w", faulty ? ffn : hidden));
    return y;
  }
};
inline constexpr auto rc211_repeated_layer_of_another_shape = layered<widening>;
// error: RC211: layer 'mine' is repeated, but its result is (tokens=32, ffn=64) and its input (tokens=32,
//        hidden=32); both must have the same shape and type
static_assert(valid<rc211_repeated_layer_of_another_shape>);

struct left_pending : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value y = project(t, x, c);
    return faulty ? y : leave_tp(y, c);
  }
};
inline constexpr auto rc211_repeated_layer_of_another_placement = layered<left_pending, true>;
// error: RC211: layer 'mine' is repeated, but its result is a pending sum (P) over tp and its input sharded
//        along tokens (V); end it with the conversion that gives the placement of its input
static_assert(valid<rc211_repeated_layer_of_another_placement>);

struct no_loss : head<false> {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value logits = linear(enter_tp(x, c), column(t, "out", ::vocab));
    return faulty ? logits : cross_entropy(logits, c.input("targets"), axis::tp, c.loss_scale);
  }
};
inline constexpr auto rc212_last_layer_makes_no_loss = modelled<ending_in<no_loss>>;
// error: RC212: the last layer's result is (tokens=32, vocab=64); expected a loss: end the model with
//        cross_entropy
static_assert(valid<rc212_last_layer_makes_no_loss>);

struct input_unused : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    if (!faulty) return gelu(x);
    return leave_tp(embedding(c.input("targets"), column(t, "table", ::vocab)), c);
  }
};
inline constexpr auto rc213_result_without_the_input = layered<input_unused>;
// error: RC213: the result of layer 'mine' does not depend on its input, so that the layers before it are not
//        trained; use the input
static_assert(valid<rc213_result_without_the_input>);

/// Layers that share the embedding's table, and a gain.
enum class tie { same_name, in_repeated, other_placement, frozen_once };
struct tied_head : head<false> {
  parameter_handle table, gain;
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value h = rms_norm(x, t.parameter(gain));
    return cross_entropy(linear(enter_tp(h, c), t.parameter(table)), c.input("targets"), axis::tp,
                         c.loss_scale);
  }
};
struct gained : layer {
  parameter_handle gain;
  bool enters = false, freezes = false;
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    if (freezes) return x + rms_norm(x, frozen(t.parameter(gain)));
    if (!enters) return x + rms_norm(x, t.parameter(gain));
    return x + leave_tp(linear(gelu(linear(rms_norm(enter_tp(x, c), t.parameter(gain)), column(t, "u"))),
                               row(t, "d")),
                        c);
  }
};
template <tie Mistake>
struct tied : ending_in<tied_head> {
  constexpr auto stack() const {
    const parameter_handle table = token_table(::vocab, hidden);
    const parameter_handle other = token_table(::vocab, hidden, fault("wte", "lm_head"));
    const parameter_handle gain{"gain", {hidden}, {}, initial::ones},
        own{"own_gain", {hidden}, {}, initial::ones};
    const bool is_other = faulty && Mistake == tie::other_placement;
    const auto& head_table = Mistake == tie::same_name ? other : table;
    if constexpr (Mistake == tie::in_repeated && faulty)
      return sequential(models::embedding{table, true}, repeat{1, gained{{}, gain}},
                        tied_head{{}, table, own});
    else
      return sequential(
          models::embedding{table, true}, gained{{}, gain, is_other, faulty && Mistake == tie::frozen_once},
          repeat{1, models::block{{hidden, heads, heads, {1}, 1e4}, ffn}}, tied_head{{}, head_table, gain});
  }
};
inline constexpr auto rc224_two_handles_of_one_name = modelled<tied<tie::same_name>>;
// error: RC224: parameter 'wte' of layer 'mine' has the name of one of layer 'embedding'; pass one
//        parameter_handle to both to share it, or take another name
static_assert(valid<rc224_two_handles_of_one_name>);
inline constexpr auto rc214_handle_in_a_repeated_layer = modelled<tied<tie::in_repeated>>;
// error: RC214: parameter 'gain' of layer 'mine' is that of a handle, but the layer is repeated; layers that
//        stand alone can share one: declare it by its name
static_assert(valid<rc214_handle_in_a_repeated_layer>);
inline constexpr auto rc214_gradients_of_two_placements = modelled<tied<tie::other_placement>>;
// error: RC214: the gradient of parameter 'gain' is invariant (I) over tp in layer 'mine' and a pending sum
//        (P) in layer 'mine'; use it on values of one placement, or give each its own
static_assert(valid<rc214_gradients_of_two_placements>);
inline constexpr auto rc214_frozen_in_one_layer = modelled<tied<tie::frozen_once>>;
// error: RC214: parameter 'gain' is frozen in layer 'mine' and trained in layer 'mine'; freeze it in both, or
//        in neither
static_assert(valid<rc214_frozen_in_one_layer>);

// ---- axes that are lowered for tokens alone

struct gathers_replicas : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value of_replica = all_gather(all_gather(x, axis::cp, c.tokens.name), axis::dp_shard, c.tokens.name);
    if (faulty) all_gather(of_replica, axis::dp_replicate, c.tokens.name);  // @gathers_replicas@
    return x + leave_tp(project(t, x, c), c);
  }
};
inline constexpr plan conversion_over_replicas{.model = around<gathers_replicas>{},
                                               .dims = parallel_dims{.world = 2, .dp_replicate = 2},
                                               .schedule = one_microbatch,
                                               .recipe = recipe,
                                               .cluster = clusters::cpu};
// error: RC226: typed.cpp:@gathers_replicas@: all_gather: a conversion over dp_replicate inside a layer is
//        not lowered in this version: set dp_replicate=1
static_assert(valid<conversion_over_replicas>);

// ---- sequences that cp shards

template <class Layer>
inline constexpr plan on_chunks{.model = around<Layer>{},
                                .dims = parallel_dims{.world = 2, .cp = 2},
                                .schedule = one_microbatch,
                                .recipe = recipe,
                                .cluster = clusters::cpu};
constexpr value features(trace& t, value x, std::string_view name) {
  return linear(x, t.parameter(name, {heads, hidden}, {}, initial::normal, 0.02));
}

struct keys_of_own_tokens : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value q = features(t, x, "wq"), k = features(t, x, "wk"), v = features(t, x, "wv");
    value all_k = all_gather(k, axis::cp, c.tokens.name), all_v = all_gather(v, axis::cp, c.tokens.name);
    // @keys_of_own_tokens@
    return x + linear(attention(q, faulty ? k : all_k, all_v, c.rows, c.seq), whole(t, "wo", hidden, heads));
  }
};
inline constexpr auto attention_to_keys_of_own_tokens = on_chunks<keys_of_own_tokens>;
// error: RC210: typed.cpp:@keys_of_own_tokens@: attention: k is sharded along tokens (V) over cp; expected
//        replicated (R): every query meets every key: all_gather it over the tokens first
static_assert(valid<attention_to_keys_of_own_tokens>);

template <int Which>
struct scored : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value q = features(t, x, "wq"), k = features(t, x, "wk"), v = features(t, x, "wv");
    constexpr attention_setting settings[]{
        {.window = -4}, {.softcap = -30}, {.scale = 1e-40}, {.window = 4, .causal = false}};
    const attention_setting by = faulty ? settings[Which] : attention_setting{.window = 4};
    return x + linear(self_attention(q, k, v, c, by), whole(t, "wo", hidden, heads));  // @scored@
  }
};
inline constexpr auto window_below_zero = on_chunks<scored<0>>;
// error: RC210: typed.cpp:@scored@: attention: its window is -4 tokens; expected at least 1, or 0 for no
//        window
static_assert(valid<window_below_zero>);
inline constexpr auto softcap_below_zero = on_chunks<scored<1>>;
// error: RC210: typed.cpp:@scored@: attention: its softcap is -30; expected a finite number of at least
//        1.2e-38, or 0 for no softcap
static_assert(valid<softcap_below_zero>);
inline constexpr auto scale_that_f32_rounds_to_zero = on_chunks<scored<2>>;
// error: RC210: typed.cpp:@scored@: attention: its scale is 1e-40; expected a finite number of at least
//        1.2e-38, or 0 for 1 / sqrt(head dim)
static_assert(valid<scale_that_f32_rounds_to_zero>);

inline constexpr auto window_of_full_attention = on_chunks<scored<3>>;
// error: RC210: typed.cpp:@scored@: attention: its window is 4 tokens and it is not causal; only causal
//        attention takes a window: leave out the window, or causal = false
static_assert(valid<window_of_full_attention>);

template <int Which>
struct sunk : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value q = features(t, x, "wq"), k = features(t, x, "wk"), v = features(t, x, "wv");
    const dim heads_with_sinks{"heads", faulty && Which == 0 ? 3 : 4};
    value scores = sink_scores(q, t.parameter("sinks", {heads_with_sinks}, {}, initial::zeros));  // @sinks@
    value keys = all_gather(k, axis::cp, c.tokens.name), values = all_gather(v, axis::cp, c.tokens.name);
    value o = attention(q, keys, values, c.rows, c.seq);
    value y = add_sinks(faulty && Which == 1 ? q : o, scores);  // @add_sinks@
    if (faulty && Which == 2) y = y + o;                        // @without_sinks@
    return x + linear(y, whole(t, "wo", hidden, heads));
  }
};
inline constexpr auto sinks_of_other_heads = on_chunks<sunk<0>>;
// error: RC210: typed.cpp:@sinks@: sink_scores 'sinks': the sinks are (heads=3); expected one number for each
//        head, (heads=4)
static_assert(valid<sinks_of_other_heads>);
inline constexpr auto sinks_of_no_attention = on_chunks<sunk<1>>;
// error: RC210: typed.cpp:@add_sinks@: add_sinks: the value is not a result of attention; expected that of
//        attention or ring_attention
static_assert(valid<sinks_of_no_attention>);
inline constexpr auto attention_read_without_its_sinks = on_chunks<sunk<2>>;
// error: RC210: typed.cpp:@without_sinks@: add_sinks: add reads the result of attention without its sinks;
//        expected that add_sinks alone reads it
static_assert(valid<attention_read_without_its_sinks>);

struct turned_late : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value q = rope(features(t, x, "wq"), c.seq, 10000), k = features(t, x, "wk"), v = features(t, x, "wv");
    if (!faulty) k = rope(k, c.seq, 10000);
    value keys = all_gather(k, axis::cp, c.tokens.name), values = all_gather(v, axis::cp, c.tokens.name);
    if (faulty) keys = rope(keys, c.seq, 10000);  // @turned_late@
    return x + linear(attention(q, keys, values, c.rows, c.seq), whole(t, "wo", hidden, heads));
  }
};
inline constexpr auto positions_of_gathered_keys = on_chunks<turned_late>;
// error: RC210: typed.cpp:@turned_late@: rope: the value is replicated (R) over cp; expected sharded along
//        the tokens: take the positions before all_gather, which puts tokens in the order of ranks
static_assert(valid<positions_of_gathered_keys>);

/// A layer that always exchanges heads, whatever the plan's cp_attention is.
struct exchanges : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value q = features(t, x, "wq"), k = features(t, x, "wk"), v = features(t, x, "wv");
    // @exchanges_gathered@
    const auto to_heads = [&](value of) { return all_to_all(of, axis::cp, "heads", c.seq); };
    value heads_q = to_heads(faulty ? all_gather(q, axis::cp, c.tokens.name) : q);
    value o = attention(heads_q, to_heads(k), to_heads(v), c.rows, c.seq);
    return x + linear(all_to_all(o, axis::cp, c.tokens.name, c.seq), whole(t, "wo", hidden, heads));
  }
};
inline constexpr auto exchange_of_gathered_rows = on_chunks<exchanges>;
// error: RC210: typed.cpp:@exchanges_gathered@: all_to_all: the value is replicated (R) over cp; expected
//        sharded along the dim that is put together (V): there is nothing to exchange
static_assert(valid<exchange_of_gathered_rows>);

struct exchanges_over_tp : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value h = linear(enter_tp(x, c), column(t, "w1"));
    if (faulty) h = all_to_all(h, axis::tp, c.tokens.name, c.seq);  // @exchanges_over_tp@
    return x + leave_tp(linear(h, row(t, "w2")), c);
  }
};
inline constexpr auto exchange_over_tp = layered<exchanges_over_tp>;
// error: RC210: typed.cpp:@exchanges_over_tp@: all_to_all: it is over tp; heads are exchanged over cp only
static_assert(valid<exchange_over_tp>);

struct turned_after_exchange : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value q = features(t, x, "wq"), k = features(t, x, "wk"), v = features(t, x, "wv");
    if (!faulty) q = rope(q, c.seq, 10000);
    q = all_to_all(q, axis::cp, "heads", c.seq);
    if (faulty) q = rope(q, c.seq, 10000);  // @turned_after_exchange@
    value keys = all_to_all(k, axis::cp, "heads", c.seq), values = all_to_all(v, axis::cp, "heads", c.seq);
    value o = attention(q, keys, values, c.rows, c.seq);
    return x + linear(all_to_all(o, axis::cp, c.tokens.name, c.seq), whole(t, "wo", hidden, heads));
  }
};
inline constexpr auto positions_of_exchanged_rows = on_chunks<turned_after_exchange>;
// error: RC210: typed.cpp:@turned_after_exchange@: rope: the value is sharded along heads (V) over cp;
//        expected sharded along the tokens: take the positions before all_to_all, when tokens are the rank's
//        own
static_assert(valid<positions_of_exchanged_rows>);

struct half_sequences : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    const int pieces = faulty ? 2 : 1;
    const auto heads_of = [&](std::string_view name) {
      return all_to_all(features(t, x, name), axis::cp, "heads", c.seq);
    };
    value q = heads_of("wq"), k = heads_of("wk"), v = heads_of("wv");
    value o = attention(q, k, v, c.rows * pieces, c.seq / pieces);  // @half_sequences@
    return x + linear(all_to_all(o, axis::cp, c.tokens.name, c.seq), whole(t, "wo", hidden, heads));
  }
};
inline constexpr auto attention_within_half_sequences = on_chunks<half_sequences>;
// error: RC210: typed.cpp:@half_sequences@: attention: its sequences have 4 tokens, and the ranks of cp=2
//        shard sequences of seq=8; take these, or cp=1
static_assert(valid<attention_within_half_sequences>);

/// The same with ring attention.
template <class Layer>
inline constexpr plan on_ring{.model = around<Layer>{},
                              .dims = parallel_dims{.world = 2, .cp = 2, .cp_attention = cp_attention::ring},
                              .schedule = one_microbatch,
                              .recipe = recipe,
                              .cluster = clusters::cpu};

struct gathered_for_a_ring : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value q = features(t, x, "wq"), k = features(t, x, "wk"), v = features(t, x, "wv");
    if (faulty) k = all_gather(k, axis::cp, c.tokens.name);
    // @gathered_for_a_ring@
    return x + linear(ring_attention(q, k, v, c.rows, c.seq, c.ring), whole(t, "wo", hidden, heads));
  }
};
inline constexpr auto ring_of_gathered_keys = on_ring<gathered_for_a_ring>;
// error: RC210: typed.cpp:@gathered_for_a_ring@: ring_attention: k is replicated (R) over cp; expected
//        sharded along the tokens (V): a ring shifts the shards of its ranks: do not gather it
static_assert(valid<ring_of_gathered_keys>);

struct handed_on_gathered : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value k = features(t, x, "wk"), v = features(t, x, "wv");
    // @handed_on_gathered@
    const value_pair next = shift(faulty ? all_gather(k, axis::cp, c.tokens.name) : k, v, axis::cp, c.ring);
    const value_pair own = shift_back(next.first, next.second, axis::cp, c.ring);
    return x + linear(own.first + own.second, whole(t, "wo", hidden, heads));
  }
};
inline constexpr auto shift_of_gathered_rows = on_ring<handed_on_gathered>;
// error: RC210: typed.cpp:@handed_on_gathered@: shift: the first value is replicated (R) over cp; expected
//        sharded along the tokens (V): there is nothing to shift
static_assert(valid<shift_of_gathered_rows>);

struct handed_on_over_tp : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value h = linear(enter_tp(x, c), column(t, "w1"));
    if (faulty) h = shift(h, h, axis::tp, 2).first;  // @handed_on_over_tp@
    return x + leave_tp(linear(h, row(t, "w2")), c);
  }
};
inline constexpr auto shift_over_tp = layered<handed_on_over_tp>;
// error: RC210: typed.cpp:@handed_on_over_tp@: shift: it is over tp; a shift is over cp only
static_assert(valid<shift_over_tp>);

struct of_two_ranks : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value k = features(t, x, "wk"), v = features(t, x, "wv");
    const value_pair next = shift(k, v, axis::cp, c.ring);
    // @of_two_ranks@
    const value_pair own = shift_back(next.first, faulty ? v : next.second, axis::cp, c.ring);
    return x + linear(own.first + own.second, whole(t, "wo", hidden, heads));
  }
};
inline constexpr auto shift_of_tokens_of_two_ranks = on_ring<of_two_ranks>;
// error: RC210: typed.cpp:@of_two_ranks@: shift_back: one value is (tokens=32 shifted by 1 ranks, heads=32)
//        and the other (tokens=32, heads=32); expected two with the same tokens, as keys and values have
static_assert(valid<shift_of_tokens_of_two_ranks>);

struct turned_on_the_way : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value k = features(t, x, "wk"), v = features(t, x, "wv");
    if (!faulty) k = rope(k, c.seq, 10000);
    value_pair at = shift(k, v, axis::cp, c.ring);
    if (faulty) at.first = rope(at.first, c.seq, 10000);  // @turned_on_the_way@
    at = shift_back(at.first, at.second, axis::cp, c.ring);
    return x + linear(at.first + at.second, whole(t, "wo", hidden, heads));
  }
};
inline constexpr auto positions_of_another_rank = on_ring<turned_on_the_way>;
// error: RC210: typed.cpp:@turned_on_the_way@: rope: the value's tokens have been shifted by 1 ranks;
//        expected the rank's own (shift and ring_attention take others')
static_assert(valid<positions_of_another_rank>);

struct residual_of_another : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value k = features(t, x, "wk"), v = features(t, x, "wv");
    value_pair at = shift(k, v, axis::cp, c.ring);
    if (!faulty) at = shift_back(at.first, at.second, axis::cp, c.ring);
    return x + linear(k + at.first + at.second, whole(t, "wo", hidden, heads));  // @residual_of_another@
  }
};
inline constexpr auto sum_with_another_rank = on_ring<residual_of_another>;
// error: RC210: typed.cpp:@residual_of_another@: add: the left operand is (tokens=32, heads=32) and the right
//        operand (tokens=32 shifted by 1 ranks, heads=32); expected two of one shape
static_assert(valid<sum_with_another_rank>);

struct another_ring : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value q = features(t, x, "wq"), k = features(t, x, "wk"), v = features(t, x, "wv");
    const int ring = faulty ? 4 : c.ring;
    // @another_ring@
    return x + linear(ring_attention(q, k, v, c.rows, c.seq, ring), whole(t, "wo", hidden, heads));
  }
};
inline constexpr auto ring_of_another_size = on_ring<another_ring>;
// error: RC210: typed.cpp:@another_ring@: ring_attention: its ring has 4 ranks; rings of this plan have 2 (cp
//        / ulysses with cp_attention=ring): take the layer_context's ring
static_assert(valid<ring_of_another_size>);

struct handed_out : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value k = features(t, x, "wk"), v = features(t, x, "wv");
    const value_pair next = shift(k, v, axis::cp, c.ring);
    const value_pair own = shift_back(next.first, next.second, axis::cp, c.ring);  // @handed_out@
    return x + linear(faulty ? own.first : own.first + own.second, whole(t, "wo", hidden, heads));
  }
};
inline constexpr auto nothing_reads_what_comes = on_ring<handed_out>;
// error: RC210: typed.cpp:@handed_out@: shift_back: no op of the layer reads what arrives around the ring;
//        add an op that uses it
static_assert(valid<nothing_reads_what_comes>);

/// The same with Ulysses pairs in a ring.
template <class Layer>
inline constexpr plan on_pairs{
    .model = around<Layer>{},
    .dims = parallel_dims{.world = 4, .cp = 4, .ulysses = 2, .cp_attention = cp_attention::ring},
    .schedule = one_microbatch,
    .recipe = recipe,
    .cluster = clusters::cpu};
constexpr value pairs_attend(const layer_context& c, value q, value k, value v) {
  return ring_attention(heads_of_rank(q, c), heads_of_rank(k, c), heads_of_rank(v, c), c.rows, c.seq, c.ring);
}

struct keeps_heads : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value q = features(t, x, "wq"), k = features(t, x, "wk"), v = features(t, x, "wv"),
          o = pairs_attend(c, q, k, v);
    if (!faulty) o = tokens_of_rank(o, c);
    return x + linear(o, whole(t, "wo", hidden, heads));  // @keeps_heads@
  }
};
inline constexpr auto product_of_heads_in_a_ring = on_pairs<keeps_heads>;
// error: RC210: typed.cpp:@keeps_heads@: linear 'wo': the value is sharded along heads in groups, and over
//        these along tokens (V) over cp; expected the rank's own tokens: all_to_all it back first (shift and
//        ring_attention take such)
static_assert(valid<product_of_heads_in_a_ring>);

struct whole_in_a_group : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value q = heads_of_rank(features(t, x, "wq"), c), k = heads_of_rank(features(t, x, "wk"), c),
          v = heads_of_rank(features(t, x, "wv"), c);
    // @whole_in_a_group@
    value o = faulty ? attention(q, k, v, c.rows, c.seq) : ring_attention(q, k, v, c.rows, c.seq, c.ring);
    return x + linear(tokens_of_rank(o, c), whole(t, "wo", hidden, heads));
  }
};
inline constexpr auto attention_to_keys_of_a_group = on_pairs<whole_in_a_group>;
// error: RC210: typed.cpp:@whole_in_a_group@: attention: the value is sharded along heads in groups, and over
//        these along tokens (V) over cp; expected the rank's own tokens: all_to_all it back first (shift and
//        ring_attention take such)
static_assert(valid<attention_to_keys_of_a_group>);

struct back_over_all : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value q = features(t, x, "wq"), k = features(t, x, "wk"), v = features(t, x, "wv"),
          o = pairs_attend(c, q, k, v);
    o = faulty ? all_to_all(o, axis::cp, c.tokens.name, c.seq) : tokens_of_rank(o, c);  // @back_over_all@
    return x + linear(o, whole(t, "wo", hidden, heads));
  }
};
inline constexpr auto exchange_over_all_groups = on_pairs<back_over_all>;
// error: RC210: typed.cpp:@back_over_all@: all_to_all: the value is sharded along heads in groups, and over
//        these along tokens (V) over cp; expected sharded along the dim that is put together (V): name the
//        ring of its groups
static_assert(valid<exchange_over_all_groups>);

struct other_groups : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    layer_context of = c;
    if (faulty) of.ring = 4;
    value q = features(t, x, "wq"), k = features(t, x, "wk"), v = features(t, x, "wv");
    if (faulty) q = tokens_of_rank(heads_of_rank(q, of), of);  // @other_groups@
    return x + linear(tokens_of_rank(pairs_attend(c, q, k, v), c), whole(t, "wo", hidden, heads));
  }
};
inline constexpr auto exchange_in_other_groups = on_pairs<other_groups>;
// error: RC210: typed.cpp:@other_groups@: all_to_all: it is in groups of a ring of 4; rings of this plan have
//        2 groups (cp / ulysses): take the layer_context's ring
static_assert(valid<exchange_in_other_groups>);

struct gathers_in_pairs : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value q = features(t, x, "wq"), k = features(t, x, "wk"), v = features(t, x, "wv");
    if (!faulty)
      return x + linear(tokens_of_rank(pairs_attend(c, q, k, v), c), whole(t, "wo", hidden, heads));
    // @gathers_in_pairs@
    value keys = all_gather(k, axis::cp, c.tokens.name), values = all_gather(v, axis::cp, c.tokens.name);
    return x + linear(attention(q, keys, values, c.rows, c.seq), whole(t, "wo", hidden, heads));
  }
};
inline constexpr auto gathering_over_groups = on_pairs<gathers_in_pairs>;
// error: RC210: typed.cpp:@gathers_in_pairs@: all_gather: it is over all of cp=4, whose ranks are in groups
//        of ulysses=2; take all_to_all in these and shift between them, or ulysses=1 or ulysses=4
static_assert(valid<gathering_over_groups>);

struct gathered_residual : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value y = linear(x, whole(t, "w", hidden));
    if (faulty) y = all_gather(y, axis::cp, c.tokens.name);
    return x + y;  // @gathered_residual@
  }
};
inline constexpr auto residual_of_gathered_rows = on_chunks<gathered_residual>;
// error: RC210: typed.cpp:@gathered_residual@: add: the left operand is sharded along tokens (V) and the
//        right operand replicated (R) over cp; expected one placement: shard both along the same dim, or
//        neither
static_assert(valid<residual_of_gathered_rows>);

struct sharded_over_chunks : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value gain =
        faulty ? t.parameter("gain", {hidden}, {{axis::cp, "hidden"}}, initial::ones) : vector(t, "gain");
    return x + leave_tp(project(t, rms_norm(x, gain), c), c);  // @norm_over_chunks@
  }
};
inline constexpr auto parameter_over_chunks = on_chunks<sharded_over_chunks>;
// error: RC210: typed.cpp:@norm_over_chunks@: rms_norm 'gain': the weight is sharded along hidden (V) over
//        cp; expected the same on every rank (I): declare it without a shard
static_assert(valid<parameter_over_chunks>);

// ---- axes that no value is placed on

struct replicates_over_stages : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    if (faulty) replicate(x, axis::pp);  // @replicates_over_stages@
    return x + leave_tp(project(t, x, c), c);
  }
};
inline constexpr auto conversion_over_stages = layered<replicates_over_stages>;
// error: RC210: typed.cpp:@replicates_over_stages@: replicate: it is over pp, and no value is placed on it;
//        values are placed on dp_replicate, dp_shard, cp, ep, tp and etp
static_assert(valid<conversion_over_stages>);

struct sharded_over_stages : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value gain{};
    // @sharded_over_stages@
    if (faulty) gain = t.parameter("gain", {hidden}, {{axis::pp, "hidden"}}, initial::ones);
    else gain = vector(t, "gain");
    return x + leave_tp(project(t, rms_norm(x, gain), c), c);
  }
};
inline constexpr auto parameter_over_stages = layered<sharded_over_stages>;
// error: RC210: typed.cpp:@sharded_over_stages@: parameter 'gain': it is sharded over another axis, and no
//        value is placed on it; values are placed on dp_replicate, dp_shard, cp, ep, tp and etp
static_assert(valid<parameter_over_stages>);

// ---- names of values

struct named_illegally : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value y = as(fault("x-mid", "x_mid"), leave_tp(project(t, x, c), c));  // @named_illegally@
    return x + y;
  }
};
inline constexpr auto name_that_is_no_identifier = layered<named_illegally>;
// error: RC210: typed.cpp:@named_illegally@: as 'x-mid': it is no legal identifier; a value's name has
//        letters, digits and '_', and begins with no digit
static_assert(valid<name_that_is_no_identifier>);

struct named_alike : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value y = as("y_part", project(t, x, c));                 // @named_first@
    return x + as(fault("y_part", "y_sum"), leave_tp(y, c));  // @named_alike@
  }
};
inline constexpr auto name_of_two_values = layered<named_alike>;
// error: RC210: typed.cpp:@named_alike@: as 'y_part': line @named_first@ of this layer names another value
//        so; names are unique in a layer
static_assert(valid<name_of_two_values>);

struct named_twice : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value y = as("first", leave_tp(project(t, x, c), c));  // @named_before@
    if (faulty) y = as("second", y);                       // @named_twice@
    return x + y;
  }
};
inline constexpr auto value_of_two_names = layered<named_twice>;
// error: RC210: typed.cpp:@named_twice@: as 'second': line @named_before@ of this layer names the value
//        'first'; it has one name
static_assert(valid<value_of_two_names>);

struct named_parameter : layer {
  constexpr value forward(trace& t, value x, const layer_context&) const {
    value gain = vector(t, "gain");
    if (faulty) gain = as("g", gain);  // @named_parameter@
    return x + rms_norm(x, gain);
  }
};
inline constexpr auto name_of_a_parameter = layered<named_parameter>;
// error: RC210: typed.cpp:@named_parameter@: as 'g': the value is a parameter, which has a name; name what an
//        op made
static_assert(valid<name_of_a_parameter>);

struct names_its_input : layer {
  constexpr value forward(trace& t, value x, const layer_context&) const {
    if (faulty) x = as("residual", x);  // @named_input@
    return x + rms_norm(x, vector(t, "gain"));
  }
};
inline constexpr auto name_of_an_input = layered<names_its_input>;
// error: RC210: typed.cpp:@named_input@: as 'residual': the value is an input of the layer; name what an op
//        made
static_assert(valid<name_of_an_input>);

// ---- parameters that are not trained

struct half_frozen : layer {
  constexpr value forward(trace& t, value x, const layer_context&) const {
    value gain = frozen(vector(t, "gain")), shift = vector(t, "shift");
    if (!faulty) shift = frozen(shift);
    return x + layer_norm(x, gain, shift);  // @half_frozen@
  }
};
inline constexpr auto frozen_gain_and_trained_shift = layered<half_frozen>;
// error: RC210: typed.cpp:@half_frozen@: layer_norm 'gain': it is frozen and 'shift' is not, and one kernel
//        makes the gradients of both; freeze both, or neither
static_assert(valid<frozen_gain_and_trained_shift>);

struct frozen_value : layer {
  constexpr value forward(trace& t, value x, const layer_context&) const {
    value h = rms_norm(x, frozen(vector(t, "gain")));
    return x + (faulty ? frozen(h) : h);  // @frozen_value@
  }
};
inline constexpr auto frozen_result_of_an_op = layered<frozen_value>;
// error: RC210: typed.cpp:@frozen_value@: frozen: the value is not a parameter; expected one, of
//        t.parameter(...)
static_assert(valid<frozen_result_of_an_op>);

struct frozen_unused : layer {
  constexpr value forward(trace& t, value x, const layer_context&) const {
    if (faulty) (void)frozen(t.parameter("gain", {hidden}, {}, initial::ones));  // @frozen_unused@
    return x + gelu(x);
  }
};
inline constexpr auto frozen_parameter_that_is_not_read = layered<frozen_unused>;
// error: RC210: typed.cpp:@frozen_unused@: parameter 'gain': no op reads it; use it, or leave it out
static_assert(valid<frozen_parameter_that_is_not_read>);

// ---- additional losses

constexpr op_row penalty_row = [] {
  op_row row = ops::cross_entropy;
  row.name = "penalty";
  row.ports[1] = ports::in("x", "tokens width");
  row.rule = [](complaint&, types in, type* out, const op&) {
    for (axis a : axes) out[0][a] = in[0][a].k == placement::V ? P : in[0][a];
  };
  row.dual = [](backward& b) { b.give("x", b.apply(ops::scale, {b["x"]})); };
  row.header = "penalty.hpp";
  return row;
}();
constexpr value penalty(operand x) {
  return x.v.in->apply(penalty_row, {x.v}, x.from, {.with = {.factor = 2}});
}

struct adds_rows : layer {
  constexpr value forward(trace&, value x, const layer_context&) const {
    if (faulty) add_loss(x);  // @adds_rows@
    return x + gelu(x);
  }
};
inline constexpr auto side_loss_that_is_none = layered<adds_rows>;
// error: RC210: typed.cpp:@adds_rows@: add_loss: the value is (tokens=32, hidden=32); expected a loss, as
//        cross_entropy makes
static_assert(valid<side_loss_that_is_none>);

struct adds_replicated : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value h = enter_tp(x, c);
    add_loss(penalty(faulty ? h : x));  // @adds_replicated@
    return x + leave_tp(linear(gelu(linear(h, column(t, "w1"))), row(t, "w2")), c);
  }
};
inline constexpr auto side_loss_of_each_rank = layered<adds_replicated>;
// error: RC210: typed.cpp:@adds_replicated@: add_loss: the loss is replicated (R) over tp; expected invariant
//        (I): each rank would count it
static_assert(valid<side_loss_of_each_rank>);

struct adds_shards : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value u = gelu(linear(enter_tp(x, c), column(t, "w1")));
    add_loss(penalty(faulty ? u : x));  // @adds_shards@
    return x + leave_tp(linear(u, row(t, "w2")), c);
  }
};
inline constexpr auto side_loss_of_shards = layered<adds_shards>;
// error: RC210: typed.cpp:@adds_shards@: add_loss: the loss is a pending sum (P) over tp; expected invariant
//        (I): make it of whole values (all_gather, all_reduce)
static_assert(valid<side_loss_of_shards>);

struct adds_twice : layer {
  constexpr value forward(trace&, value x, const layer_context&) const {
    value loss = penalty(x);
    add_loss(loss);
    if (faulty) add_loss(loss);  // @adds_twice@
    return x + gelu(x);
  }
};
inline constexpr auto side_loss_added_twice = layered<adds_twice>;
// error: RC210: typed.cpp:@adds_twice@: add_loss: the loss is added already; add it once
static_assert(valid<side_loss_added_twice>);

struct forgets_loss : layer {
  constexpr value forward(trace&, value x, const layer_context&) const {
    value loss = penalty(x);
    if (!faulty) add_loss(loss);
    return x + gelu(x);
  }
};
inline constexpr auto rc212_loss_that_does_not_count = layered<forgets_loss>;
// error: RC212: layer 'mine' makes a loss that does not count; return it, or add it with add_loss
static_assert(valid<rc212_loss_that_does_not_count>);

struct adds_result : head<false> {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value loss = cross_entropy(linear(enter_tp(x, c), column(t, "out", ::vocab)), c.input("targets"),
                               axis::tp, c.loss_scale);
    if (faulty) add_loss(loss);
    return loss;
  }
};
inline constexpr auto rc212_result_added = modelled<ending_in<adds_result>>;
// error: RC212: layer 'mine' adds its result as a loss, but a result that is a loss counts already; only
//        return it
static_assert(valid<rc212_result_added>);

// ---- orders of sharded dims

inline constexpr dim zig_zag{"ffn", 64, 1, "", shard_order::zig_zag};

struct two_orders : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value h = enter_tp(x, c);
    value u = linear(h, column(t, "w1", faulty ? zig_zag : ffn)), g = linear(h, column(t, "w3"));
    return x + leave_tp(linear(gelu(u + g), row(t, "w2")), c);  // @two_orders@
  }
};
inline constexpr auto sum_of_two_orders = layered<two_orders>;
// error: RC210: typed.cpp:@two_orders@: add: the left operand is (tokens=32, ffn=64 in zig-zag order) and the
//        right operand (tokens=32, ffn=64); expected two of one shape
static_assert(valid<sum_of_two_orders>);

struct other_order : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value u = linear(enter_tp(x, c), column(t, "w1", faulty ? zig_zag : ffn));
    return x + leave_tp(linear(gelu(u), row(t, "w2")), c);  // @other_order@
  }
};
inline constexpr auto product_of_another_order = layered<other_order>;
// error: RC210: typed.cpp:@other_order@: linear 'w2': the value's last dim is ffn=64 in zig-zag order;
//        expected the weight's ffn=64
static_assert(valid<product_of_another_order>);

template <bool ZigZag>
struct in_order : layer {
  static constexpr dim inner = ZigZag ? zig_zag : ffn;
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value w1 = column(t, "w1", inner);
    return x + leave_tp(linear(gelu(linear(enter_tp(x, c), w1)), row(t, "w2", hidden, inner)), c);
  }
};
inline constexpr auto rc228_order_without_kernels = layered<in_order<faulty>>;
// error: RC228: typed.cpp:@order_of_column@: parameter 'w1': it is sharded along ffn=64 in zig-zag order;
//        this version has kernels for contiguous shards: leave the dim's order out
static_assert(valid<rc228_order_without_kernels>);
struct gathered_features : layer {
  static constexpr dim again{"again", 64};
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value h = gelu(linear(enter_tp(x, c), column(t, "w1")));
    if (!faulty) return x + leave_tp(linear(h, row(t, "w2")), c);
    value all = all_gather(h, axis::tp, "ffn");  // @gathered_features@
    value w2 = t.parameter("w2", {again, ffn}, {{axis::tp, "again"}}, initial::normal, 0.02);
    return x + leave_tp(linear(linear(all, w2), row(t, "w3", hidden, again)), c);
  }
};
inline constexpr auto rc228_gather_of_features = layered<gathered_features>;
// error: RC228: typed.cpp:@gathered_features@: all_gather: over tp it is along ffn=64; this version gathers
//        and scatters rows: take the dim of the tokens, or a product whose weight is sharded along the same
//        features
static_assert(valid<rc228_gather_of_features>);
// On one rank there are no shards.
inline constexpr plan one_rank_in_order{.model = around<in_order<true>>{},
                                        .schedule = one_microbatch,
                                        .recipe = recipe,
                                        .cluster = clusters::cpu};
static_assert(valid<one_rank_in_order>);
