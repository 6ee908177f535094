// SPDX-License-Identifier: Apache-2.0
// A model of two parameters with three rows each, and its handmade program for ranks that each keep a shard
// of them: rows are all-gathered at the beginning of the step, and the gradients of each microbatch are
// reduce-scattered and accumulated in shards. Three rows do not divide by two: the second shard ends with a
// row of zeros.
#pragma once
#include "by_hand.hpp"

namespace equivalence_tests {

inline constexpr std::int64_t tokens_of_two = 16;

inline specification model_of_two() {
  specification s;
  specification::layer l;
  l.name = "net";
  constexpr std::int64_t t = tokens_of_two;
  //           0 ids  1 targets  2 table       3 shift  4 looked up  5 logits    6 top    7 sums  8 loss
  l.values = {{{t}},        {{t}},    {{words, words}}, {{words}}, {{t, words}},
              {{t, words}}, {{t, 1}}, {{t, 2}},         {{}}};
  l.ops = {{"embedding", {0, 2}, {4}},
           {"bias", {4, 3}, {5}},
           {"row_max", {5}, {6}},
           {"exp_sums", {5, 6, 1}, {7}},
           {"cross_entropy", {7}, {8}, 0, 0, 0.125}};
  l.input = 0;
  l.inputs = {{"targets", 1}};
  l.result = 8;
  l.parameters = {{"table", 2}, {"shift", 3}};
  s.layers = {l};
  s.uses = {{0, "net", {"table", "shift"}}};
  s.tokens = t;
  return s;
}

/// Ranks are numbered replica by replica, then shard by shard. First come the communicators over each
/// replica's shards, then those over each shard's replicas.
struct shards {
  int replicas = 1, of = 2;
  int present = of;  // the first shards, which the program contains

  std::int64_t rows() const { return (words + of - 1) / of; }
  std::int64_t stored() const { return of * rows(); }
};

class sharded_rank {
 public:
  sharded_rank(const shards& s, int rank)
      : s_(s), replica_(rank / s.present), shard_(rank % s.present), made_(rank) {
    begin();
    gather();
    for (int k = 0; k < 2; ++k) {
      forward(k);
      backward(k);
      reduce(k);
    }
    finish();
  }
  rank_program program() && { return std::move(made_.made); }

 private:
  using operand = rank_by_hand::operand;
  static tensor_shape matrix(std::int64_t rows, std::int64_t cols) { return {{rows, cols}, 2}; }
  static tensor_shape vector(std::int64_t n) { return {{n}, 1}; }
  operand table(const char* port, const char* name) const { return {port, name, matrix(s_.rows(), words)}; }
  operand shift(const char* port, const char* name) const { return {port, name, vector(s_.rows())}; }
  operand all_table(const char* port, const char* name) const {
    return {port, name, matrix(s_.stored(), words)};
  }
  operand all_shift(const char* port, const char* name) const { return {port, name, vector(s_.stored())}; }
  operand true_table(const char* port, const char* name) const {
    return {port, name, matrix(words, words), false, s_.stored() * words};
  }
  operand true_shift(const char* port, const char* name) const {
    return {port, name, vector(words), false, s_.stored()};
  }
  int over_shards() const { return replica_; }
  int over_replicas() const { return s_.replicas + shard_; }

  template <class Each>
  void each_state(Each each) const {
    const box_range own{shard_ * s_.rows(), s_.rows()};
    constexpr holding_kind kinds[]{holding_kind::weight, holding_kind::first_moment,
                                   holding_kind::second_moment};
    const char *tables[]{"table", "table m", "table v"}, *shifts[]{"shift", "shift m", "shift v"};
    for (int i = 0; i < 3; ++i) {
      each(table("", tables[i]), holding{.kind = kinds[i], .name = "table", .box = {own, {0, words}}});
      each(shift("", shifts[i]), holding{.kind = kinds[i], .name = "shift", .box = {own}});
    }
  }
  std::int64_t tokens_of_microbatch() const { return tokens_of_two / (2 * s_.replicas * s_.of); }

  void begin() {
    op& o = made_.add(op_kind::begin, "begin");
    each_state([&](const operand& x, const holding& h) { made_.begins(o, x, h); });
    const std::int64_t t = tokens_of_microbatch();
    for (int k = 0; k < 2; ++k) {
      const std::vector<box_range> own{{(k * s_.replicas * s_.of + replica_ * s_.of + shard_) * t, t}};
      made_.begins(o, {"", ids[k], vector(t)}, {.kind = holding_kind::ids, .box = own});
      made_.begins(o, {"", targets[k], vector(t)}, {.kind = holding_kind::targets, .box = own});
    }
  }
  void gather() {
    made_.collective(collective_kind::all_gather, over_shards(), {table("", "table"), shift("", "shift")},
                     {all_table("", "all table"), all_shift("", "all shift")});
  }
  void forward(int k) {
    const std::int64_t t = tokens_of_microbatch();
    const operand x{"y", "x", matrix(t, words)};
    made_.kernel("embedding", {x}, {{"ids", ids[k], vector(t)}, true_table("table", "all table")});
    made_.kernel("bias", {x}, {{"x", "x", x.shape}, true_shift("b", "all shift")});
    made_.kernel("row_max", {{"top", "top", matrix(t, 1)}}, {{"logits", "x", x.shape}});
    made_.kernel(
        "exp_sums", {{"sums", "sums", matrix(t, 2)}},
        {{"logits", "x", x.shape}, {"top", "top", matrix(t, 1)}, {"targets", targets[k], vector(t)}});
    made_.kernel("cross_entropy", {{"loss", "loss", {}, k > 0}}, {{"sums", "sums", matrix(t, 2)}}, 0.125);
  }
  /// Rows past the end are cleared before shift's gradient is written, and after table's.
  void backward(int k) {
    const std::int64_t t = tokens_of_microbatch(), past = s_.stored() - words;
    made_.kernel("cross_entropy_grad", {{"dsums", "dsums", matrix(t, 2)}}, {{"sums", "sums", matrix(t, 2)}},
                 0.125);
    made_.kernel("exp_sums_grad", {{"dlogits", "dx", matrix(t, words)}},
                 {{"dsums", "dsums", matrix(t, 2)},
                  {"logits", "x", matrix(t, words)},
                  {"top", "top", matrix(t, 1)},
                  {"targets", targets[k], vector(t)}});
    operand db = true_shift("db", "all shift g");
    if (past > 0) made_.kernel("clear", {{"y", "all shift g", vector(past), false, s_.stored(), words}}, {});
    db.keeps = past > 0;
    made_.kernel("bias_grad", {db}, {{"dy", "dx", matrix(t, words)}});
    made_.kernel("embedding_grad", {true_table("dtable", "all table g")},
                 {{"dy", "dx", matrix(t, words)}, {"ids", ids[k], vector(t)}});
    if (past > 0)
      made_.kernel(
          "clear",
          {{"y", "all table g", vector(past * words), false, s_.stored() * words, words * words, true}}, {});
  }
  void reduce(int k) {
    const char *to_table = k == 0 ? "table g" : "table more", *to_shift = k == 0 ? "shift g" : "shift more";
    made_.collective(collective_kind::reduce_scatter, over_shards(),
                     {all_table("", "all table g"), all_shift("", "all shift g")},
                     {table("", to_table), shift("", to_shift)});
    if (k == 0) return;
    made_.kernel("add", {table("y", "table g")}, {table("a", "table g"), table("b", "table more")});
    const tensor_shape row = matrix(1, s_.rows());
    made_.kernel("add", {{"y", "shift g", row}}, {{"a", "shift g", row}, {"b", "shift more", row}});
  }
  void finish() {
    const operand norm{"norm", "norm", {}};
    if (s_.replicas > 1) {
      made_.all_reduce(table("", "table g"), over_replicas());
      made_.all_reduce(shift("", "shift g"), over_replicas());
      made_.all_reduce({"", "loss", {}}, over_replicas());
    }
    made_.all_reduce({"", "loss", {}}, over_shards());
    op& squares =
        made_.kernel("sum_squares", {norm}, {table("gradient", "table g"), shift("gradient", "shift g")});
    std::rotate(squares.views.begin(), squares.views.begin() + 1, squares.views.end());
    made_.all_reduce(norm, over_shards());
    update(table("weight", "table"), table("gradient", "table g"), table("first_moment", "table m"),
           table("second_moment", "table v"));
    update(shift("undecayed_weight", "shift"), shift("gradient", "shift g"), shift("first_moment", "shift m"),
           shift("second_moment", "shift v"));
    op& end = made_.add(op_kind::end, "end");
    each_state([&](const operand& x, const holding& h) { made_.ends(end, x, h); });
    made_.ends(end, norm, {.kind = holding_kind::norm});
    made_.ends(end, {"", "loss", {}}, {.kind = holding_kind::loss});
  }
  void update(const operand& w, const operand& g, const operand& m, const operand& v) {
    operand after = w;
    after.port = "weight";
    op& o = made_.kernel("adamw", {after, m, v}, {w, g, m, v, {"norm", "norm", {}}});
    std::rotate(o.views.begin(), o.views.begin() + 3, o.views.begin() + 7);
  }

  static constexpr const char *ids[]{"ids0", "ids1"}, *targets[]{"targets0", "targets1"};
  shards s_;
  int replica_, shard_;
  rank_by_hand made_;
};

inline program_by_hand sharded_by_hand(const shards& s = {}) {
  program_by_hand all;
  all.p.step = "train";
  all.p.streams = 1;
  all.p.calls.on_host = true;
  const int ranks = s.replicas * s.present;
  for (int k = 0; k < s.replicas; ++k)
    all.p.communicators.push_back(
        {"shards of replica " + std::to_string(k), {}, s.present < s.of ? s.of : 0, true});
  for (int k = 0; k < s.present; ++k)
    all.p.communicators.push_back({"replicas of shard " + std::to_string(k), {}, 0, true});
  for (int r = 0; r < ranks; ++r) {
    for (const int c : {r / s.present, s.replicas + r % s.present})
      all.p.communicators[static_cast<std::size_t>(c)].ranks.push_back(r);
    all.p.ranks.push_back(sharded_rank(s, r).program());
    all.p.ranks.back().arena_bytes = arena_by_hand;
    std::vector<int>& places = all.order.position.emplace_back();
    for (std::size_t i = 0; i < all.p.ranks.back().ops.size(); ++i) places.push_back(static_cast<int>(i));
  }
  if (s.present < s.of) {
    all.p.world = s.of * s.replicas;
    all.p.mesh = {{"replica", s.replicas, s.replicas}, {"shard", s.of, s.present}};
    for (int k = 0; k < s.replicas; ++k) all.p.communicators[static_cast<std::size_t>(k)].along = {1};
    for (int r = 0; r < ranks; ++r)
      all.p.ranks[static_cast<std::size_t>(r)].number = r / s.present * s.of + r % s.present;
  }
  all.order.ok = true;
  return all;
}

}  // namespace equivalence_tests
