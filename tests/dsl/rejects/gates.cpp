// SPDX-License-Identifier: Apache-2.0
// RC210: products, head norms and splits, with operands that they cannot take.
#include "reject.hpp"

inline constexpr dim hidden{"hidden", 32}, other{"other", 32}, heads{"heads", 32, 8, "head_dim"},
    head{"head_dim", 8};
inline constexpr bool faulty = fault(true, false);

/// One layer between an embedding and a head, on two tp ranks.
template <class Layer>
struct around {
  int vocab = 64, vocab_used = 0;
  constexpr void check(report&) const {}
  constexpr auto stack() const {
    const dim words{"vocab", 64};
    const parameter_handle table = token_table(words, hidden);
    return sequential(models::embedding{table, true}, repeat{2, Layer{}},
                      models::head{.table = table, .norm = models::norm_kind::layer});
  }
};
template <class Layer>
inline constexpr plan layered{.model = around<Layer>{},
                              .dims = parallel_dims{.world = 2, .tp = 2},
                              .schedule = one_microbatch,
                              .recipe = recipe,
                              .cluster = clusters::cpu};

struct layer {
  static constexpr std::string_view name = "mine";
};
constexpr value square(trace& t, value x, std::string_view name, dim out = hidden) {
  return linear(x, t.parameter(name, {out, t.of(x).shape[1]}, {}, initial::normal, 0.02));
}
/// A pending sum of one shard of heads on each rank.
constexpr value pending(trace& t, value h) {
  value y = column_parallel(t, h, "up", heads);
  return row_parallel(t, y, "down", hidden, 0.02);
}

// ---- products

struct product_of_sums : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value y = pending(t, enter_tp(x, c));
    if (faulty) return x + leave_tp(y * y, c);  // @product_of_sums@
    y = leave_tp(y, c);
    return x + y * y;
  }
};
inline constexpr auto product_of_two_pending_sums = layered<product_of_sums>;
// error: RC210: gates.cpp:@product_of_sums@: mul: the left operand is a pending sum (P) over tp; expected R,
//        I or V: reduce it first (all_reduce, reduce_scatter)
static_assert(valid<product_of_two_pending_sums>);

struct product_with_invariant : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value h = enter_tp(x, c), y = pending(t, h);
    return x + leave_tp(y * (faulty ? x : h), c);  // @product_with_invariant@
  }
};
inline constexpr auto pending_sum_times_an_invariant_value = layered<product_with_invariant>;
// error: RC210: gates.cpp:@product_with_invariant@: mul: the right operand is invariant (I) over tp; expected
//        replicated (R), the other being a pending sum: convert it first (replicate: its gradient is then
//        all-reduced)
static_assert(valid<pending_sum_times_an_invariant_value>);

struct product_with_shards : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value y = pending(t, enter_tp(x, c));
    if (faulty) y = reduce_scatter(y, axis::tp, "tokens") * y;  // @product_with_shards@
    return x + leave_tp(y, c);
  }
};
inline constexpr auto pending_sum_times_a_sharded_value = layered<product_with_shards>;
// error: RC210: gates.cpp:@product_with_shards@: mul: the right operand is a pending sum (P) over tp;
//        expected R, I or V: reduce it first (all_reduce, reduce_scatter)
static_assert(valid<pending_sum_times_a_sharded_value>);

struct product_of_placements : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value h = enter_tp(x, c), y = leave_tp(pending(t, h), c);
    return x + (faulty ? h : x) * y;  // @product_of_placements@
  }
};
inline constexpr auto replicated_times_invariant = layered<product_of_placements>;
// error: RC210: gates.cpp:@product_of_placements@: mul: the left operand is replicated (R) and the right
//        operand invariant (I) over tp; expected one placement: use the matching conversion (all_reduce gives
//        I, reduce_scatter gives V)
static_assert(valid<replicated_times_invariant>);

struct product_of_shapes : layer {
  constexpr value forward(trace& t, value x, const layer_context&) const {
    value y = square(t, x, "w", faulty ? other : hidden);
    return x + x * y;  // @product_of_shapes@
  }
};
inline constexpr auto product_of_other_features = layered<product_of_shapes>;
// error: RC210: gates.cpp:@product_of_shapes@: mul: the left operand is (tokens=32, hidden=32) and the right
//        operand (tokens=32, other=32); expected two of one shape
static_assert(valid<product_of_other_features>);

struct endless_factor : layer {
  constexpr value forward(trace&, value x, const layer_context&) const {
    return x + scale(x, faulty ? std::numeric_limits<double>::infinity() : 2);  // @endless_factor@
  }
};
inline constexpr auto multiple_without_end = layered<endless_factor>;
// error: RC210: gates.cpp:@endless_factor@: scale: its factor is no finite number
static_assert(valid<multiple_without_end>);

struct sigmoid_of_pending : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value y = pending(t, enter_tp(x, c));
    if (faulty) return x + leave_tp(sigmoid(y), c);  // @sigmoid_of_pending@
    return x + sigmoid(leave_tp(y, c));
  }
};
inline constexpr auto sigmoid_of_a_pending_sum = layered<sigmoid_of_pending>;
// error: RC210: gates.cpp:@sigmoid_of_pending@: sigmoid: the value is a pending sum (P) over tp; expected R,
//        I or V: reduce it first (all_reduce, reduce_scatter)
static_assert(valid<sigmoid_of_a_pending_sum>);

struct softmax_of_shards : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value y = column_parallel(t, enter_tp(x, c), "up", heads);
    if (faulty) y = softmax(y);  // @softmax_of_shards@
    return x + leave_tp(row_parallel(t, y, "down", hidden, 0.02), c);
  }
};
inline constexpr auto softmax_of_sharded_features = layered<softmax_of_shards>;
// error: RC210: gates.cpp:@softmax_of_shards@: softmax: the value is sharded along heads (V) over tp;
//        expected the whole row on each rank (its sum is taken): all_gather it first
static_assert(valid<softmax_of_sharded_features>);

// ---- norms of heads

template <int Fault>
struct normed_heads : layer {
  static constexpr value gain(trace& t) {
    if (faulty && Fault == 1) return t.parameter("g", {head}, {{axis::tp, "head_dim"}}, initial::ones);
    return t.parameter("g", {faulty && Fault == 2 ? heads : head}, {}, initial::ones);
  }
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value g = gain(t);
    value y = column_parallel(t, enter_tp(x, c), "up", faulty && Fault == 3 ? other : heads);
    return x + leave_tp(row_parallel(t, head_norm(y, g), "down", hidden, 0.02), c);  // @normed_heads@
  }
};
inline constexpr auto sharded_gain_of_heads = layered<normed_heads<1>>;
// error: RC210: gates.cpp:@normed_heads@: head_norm 'g': the weight is sharded along head_dim (V) over tp;
//        expected the same on every rank (I): declare it without a shard
static_assert(valid<sharded_gain_of_heads>);
inline constexpr auto gain_of_all_heads = layered<normed_heads<2>>;
// error: RC210: gates.cpp:@normed_heads@: head_norm 'g': the weight is (heads=32); expected one number for
//        each element of a head, 8 in heads=32
static_assert(valid<gain_of_all_heads>);
inline constexpr auto features_without_heads = layered<normed_heads<3>>;
// error: RC210: gates.cpp:@normed_heads@: head_norm 'g': the weight is (head_dim=8); expected one number for
//        each element of a head, 1 in other=32
static_assert(valid<features_without_heads>);

// ---- parts

template <int Fault>
struct taken_apart : layer {
  static constexpr bool is(int fault) { return faulty && Fault == fault; }
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    const dim left{is(4) ? "the left" : "left", 16, is(1) ? 8 : 4, "left_dim"},
        right{"right", is(2) ? 12 : 16, is(1) ? 8 : 4, "right_dim"};
    value y = column_parallel(t, enter_tp(x, c), "up", heads);
    const auto [a, b] = split(y, left, right);                             // @taken_apart@
    value z = concat(b, a, dim{"heads", is(3) ? 24 : 32, 8, "head_dim"});  // @put_together@
    return x + leave_tp(row_parallel(t, z, "down", hidden, 0.02), c);
  }
};
inline constexpr auto heads_dealt_out_where_they_are_sharded = layered<taken_apart<1>>;
// error: RC210: gates.cpp:@taken_apart@: split: the value is sharded along heads (V) over tp; expected whole
//        rows, or parts of each head (a rank does not have its shard of either part): all_gather it first
static_assert(valid<heads_dealt_out_where_they_are_sharded>);
inline constexpr auto parts_that_are_too_small = layered<taken_apart<2>>;
// error: RC210: gates.cpp:@taken_apart@: split: left=16 in units of 4 and right=12 in units of 4 do not make
//        up heads=32 in units of 8; expected features in its unit that add up to it, or as many heads, of
//        sizes that add up to its heads'
static_assert(valid<parts_that_are_too_small>);
inline constexpr auto whole_that_is_too_small = layered<taken_apart<3>>;
// error: RC210: gates.cpp:@put_together@: concat: right=16 in units of 4 and left=16 in units of 4 do not
//        make up heads=24 in units of 8; expected features in its unit that add up to it, or as many heads,
//        of sizes that add up to its heads'
static_assert(valid<whole_that_is_too_small>);
inline constexpr auto part_of_no_legal_name = layered<taken_apart<4>>;
// error: RC210: gates.cpp:@taken_apart@: split_heads: a dim is named 'the left'; a name has letters, digits,
//        '_', '-' and '.'
static_assert(valid<part_of_no_legal_name>);

struct pending_and_whole : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value h = enter_tp(x, c), y = pending(t, h);
    // @pending_and_whole@
    value z = leave_tp(faulty ? concat(y, h, dim{"both", 64}) : concat(y, y, dim{"both", 64}), c);
    return x + square(t, z, "w");
  }
};
inline constexpr auto pending_sum_beside_a_whole_value = layered<pending_and_whole>;
// error: RC210: gates.cpp:@pending_and_whole@: concat: the left operand is a pending sum (P) over tp;
//        expected R, I or V, or two pending sums: reduce it first (all_reduce, reduce_scatter)
static_assert(valid<pending_sum_beside_a_whole_value>);
