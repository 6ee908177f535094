// SPDX-License-Identifier: Apache-2.0
// Draws the steps of one layer. Every function takes and returns values between tensor-parallel regions
// (`outer`: the same on every tp rank, or sharded along the tokens), and makes well-typed compositions.
// Faults are drawn elsewhere.
#pragma once
#include "draws.hpp"
#include "model.hpp"

namespace fuzz {

/// Sizes that the layers of one model share.
struct palette {
  dim hidden, vocab;
  std::vector<dim> widths;  // MLP widths
  std::vector<dim> heads;   // with one head size; each count divides the first one
  std::vector<int> seqs;    // lengths that divide the plan's
  int seq = 1;
};

class layer_builder {
 public:
  layer_builder(draws& d, const palette& p, std::string_view name, bool has_plain_names);

  /// `is_whole`: the table is the same on every tp rank, which is useless under sequence parallelism.
  int embedding(std::string_view table, bool is_whole);
  int head(int x, dim hidden, std::string_view table, bool is_whole, double factor);
  int project(int x, dim from, dim to);
  /// A block from hidden to hidden: one or more branches, most with a residual sum.
  int block(int x, dim hidden);
  layer finish(int result);

 private:
  int add_step(step s);
  int sum(int a, int b) { return add_step({.kind = step_kind::add, .in = {a, b}}); }
  int weight(std::string_view meaning, std::vector<dim> shape, std::string_view by, initial start);
  int gain_or_shift(std::string_view meaning, dim d, std::string_view by, bool is_gain);
  int linear(int x, dim from, dim to, std::string_view by);
  int maybe_bias(int x, dim d, std::string_view by, int percent);
  int norm(int x, dim d);
  int maybe_norm(int x, dim d) { return draw_.chance(75) ? norm(x, d) : x; }
  int enter(int x) {
    is_inside_ = true;
    return add_step({.kind = step_kind::enter_tp, .in = {x}});
  }
  int leave(int x) {
    is_inside_ = false;
    return add_step({.kind = step_kind::leave_tp, .in = {x}});
  }

  /// Steps in any order over values of one kind; each result is used.
  int tangle(int x, dim d, std::string_view by);
  int tangled(int x, int other, dim d, std::string_view by);
  int activation(int x, dim hidden, dim wide, std::string_view by);
  int region(int x, dim hidden);
  int mlp(int x, dim hidden);
  int whole_mlp(int x, dim hidden);
  int maybe_rope(int x, int percent);
  rope_scaling rope_scaling_of() {
    constexpr rope_scaling slower{.by = rope_scaling::linear, .factor = 4},
        by_turns{.by = rope_scaling::llama3, .factor = 8, .original_positions = 12};
    return draw_.one_of({rope_scaling{}, rope_scaling{}, slower, by_turns});
  }
  double norm_eps() { return draw_.one_of({1e-5, 1e-5, 1e-6, 1e-3}); }
  int maybe_head_norm(int x, dim heads, int percent);
  int gate(int x, int by) {
    return add_step({.kind = step_kind::mul, .in = {x, add_step({.kind = step_kind::sigmoid, .in = {by}})}});
  }
  /// Move the first elements of each head, or row, behind the others.
  int swap(int x, dim d) {
    return add_step(
        {.kind = step_kind::swap, .in = {x}, .pieces = draw_.between(1, (d.unit > 1 ? d.unit : d.size) - 1)});
  }
  int one_attention(int h, dim hidden, int q, dim of_q, std::vector<int>& keys);
  int attention(int x, dim hidden);
  int experts(int x);
  int small(int x, dim hidden);
  int branch(int x, dim hidden);

  draws& draw_;
  const palette& sizes_;
  layer out_;
  bool has_plain_names_;
  bool has_experts_ = false;  // expert parameters have fixed names
  bool is_inside_ = false;    // in a tensor-parallel region
  // By parameter: whether it is used inside a region; a whole weight is used only inside or only outside.
  std::vector<bool> used_inside_;
};

}  // namespace fuzz
