// SPDX-License-Identifier: Apache-2.0
// What each row of the table of ops computes, over the field. Sums and products are themselves; a function
// that is no polynomial is drawn, keyed by all that one of its results depends on: the element, the row, the
// keys of a query. Its gradient is linear in the gradient that it is given, with coefficients that are drawn
// likewise.
#pragma once
#include "matrix.hpp"

#include <rankc/codegen/specification.hpp>

#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace field {

struct row;
class model_attributes;

/// An op that runs: its operands by the names of the row's ports.
class call {
 public:
  std::int64_t rows = 0, seq = 0;  // the row's attributes
  double number = 0;
  rankc::attention_setting attention{};
  rankc::codegen::specification::rounding rounds{};  // the operands of its products
  model_attributes* noted_by = nullptr;              // of an op of the model: what notes its attributes
  const model_attributes* held_to = nullptr;  // of an op of a program: what its attributes must agree with
  bool agrees = true;                         // false: they did not

  /// Errors: malformed where it has no rows or no columns.
  void give(std::string_view port, matrix m, std::int64_t first = 0);
  /// A result is wanted of this size. Errors: as give.
  void want(std::string_view port, extent e, std::int64_t first = 0);

  const matrix& in(std::string_view port) const;
  /// Where a rank's part begins of the dim that the row says so of.
  std::int64_t first(std::string_view port) const;
  bool wants(std::string_view port) const;
  extent wanted(std::string_view port) const;
  /// A result, zero so far.
  /// Errors: malformed where another size is wanted.
  matrix& out(std::string_view port, std::int64_t rows, std::int64_t cols, std::int64_t unit = 1);
  /// A result of the size wanted.
  matrix& out(std::string_view port);
  const matrix& result(std::string_view port) const;

 private:
  struct operand {
    std::string_view port;
    matrix m;
    std::int64_t first = 0;
    extent e{};
  };
  std::vector<operand> given_, wanted_, made_;
};

/// Errors: malformed.
void expect(bool holds, const char* what);

/// Of an op of chunks: `number` ranks share out each of `rows` sequences, each with a chunk from the front
/// and its counterpart from the back. The token, among those of whole sequences, that is the n-th of all
/// ranks' in line.
std::int64_t token_of_chunks(const call&, std::int64_t n);

/// Where documents begin in their sequences, of the op's whole sequences.
/// Errors: malformed where one begins after its token.
const matrix& starts_of(const call&);

/// A row in text: its ports, results first, and of a fused row the plain rows that it is; of a forward row
/// the rows that make the gradients of its operands, those of a value v called d_v.
struct row {
  std::string_view name;
  std::string_view ports;  // "y = x w"
  void (*compute)(call&) = nullptr;
  std::string_view definition = "";  // "linear t = x w; bias y = t b"
  std::string_view backward = "";    // "linear_dx d_x = d_y w; linear_dw d_w = d_y x"
  std::string_view over = "";        // "y:x y:residual"
  std::string_view strided = "";     // ports whose rows may lie apart; the others are in one piece
};

std::span<const row> all_rows();
/// Errors: malformed where there is none.
const row& find_row(std::string_view name);
void run(const row&, call&);

/// One step of a definition, or of a backward.
struct statement {
  const row* does;
  std::vector<std::string_view> out, in;
};
struct signature {
  std::vector<std::string_view> out, in;
};
/// The ports of a row.
const signature& ports_of(const row&);
const std::vector<statement>& backward_of(const row&);
/// Whether a result may be written where an operand is read: each element after it was used, and for nothing
/// else.
bool may_lie_over(const row&, std::string_view result, std::string_view operand);
/// Whether the rows of a port may lie apart.
bool takes_stride(const row&, std::string_view port);

// The kernels, by what they have in common.
namespace products {
void linear(call&), linear_dx(call&), linear_dw(call&), bias(call&), bias_grad(call&);
}
namespace tables {
void embedding(call&), embedding_grad(call&), position(call&), position_grad(call&), rope(call&),
    rope_grad(call&);
void chunk_position(call&), chunk_position_grad(call&);
void document_position(call&), document_position_grad(call&), document_chunk_position(call&),
    document_chunk_position_grad(call&);
/// The cosines and sines of so many positions.
matrix rotary(std::int64_t positions, std::int64_t dim, double theta, const rankc::rope_scaling& = {});
}  // namespace tables
namespace elements {
void add(call&), mul(call&), mul_grad(call&), scale(call&), copy(call&), copy_both(call&), clear(call&);
void gelu(call&), gelu_grad(call&), sigmoid(call&), sigmoid_grad(call&), swiglu(call&), swiglu_grad(call&);
void split(call&), split_heads(call&), concat(call&), concat_heads(call&);
}  // namespace elements
namespace norms {
void layer_norm(call&), layer_norm_dw(call&), rms_norm(call&), rms_norm_dw(call&), norm_dx(call&),
    softmax(call&), softmax_dx(call&);
}
namespace attentions {
void attention(call&), attention_grad(call&), chunk_attention(call&), chunk_attention_grad(call&);
void ring_attention(call&), ring_attention_grad(call&), merge_attention(call&);
void document_attention(call&), document_attention_grad(call&), document_chunk_attention(call&),
    document_chunk_attention_grad(call&);
void document_ring_attention(call&), document_ring_attention_grad(call&);
}  // namespace attentions
namespace experts {
void arrange(call&), arrange_limited(call&), own_slots(call&), dropped_statistics(call&), dispatch(call&),
    collect(call&), combine(call&), combine_grad(call&);
void expert_up(call&), expert_down(call&), expert_down_add(call&), expert_down_two(call&), expert_dw(call&),
    normalize(call&), normalize_grad(call&), count_choices(call&);
}  // namespace experts
namespace routers {
void softmax_top(call&), softmax_top_grad(call&), sigmoid_top(call&), sigmoid_top_grad(call&);
void softmax_scores(call&), sigmoid_scores(call&), keep_groups(call&), biased_keep_groups(call&),
    softmax_top_by(call&), sigmoid_top_by(call&), biased_softmax_top_by(call&), biased_sigmoid_top_by(call&);
void softmax_statistics(call&), softmax_statistics_grad(call&), sigmoid_statistics(call&),
    sigmoid_statistics_grad(call&);
}  // namespace routers
namespace balance {
void push(call&), push_grad(call&);
void all_layers(call&), all_layers_grad(call&), each_layer(call&), each_layer_grad(call&), z(call&),
    z_grad(call&), overflow(call&), overflow_grad(call&);
}  // namespace balance
namespace losses {
/// The label of a token without a loss, which is larger than every vocabulary.
inline constexpr element ignored_label = std::uint64_t{1} << 30;

void row_max(call&), exp_sums(call&), exp_sums_grad(call&), cross_entropy(call&), cross_entropy_grad(call&);
void count_labels(call&), skip_unlabeled(call&), masked_cross_entropy(call&),
    masked_cross_entropy_grad(call&);
}  // namespace losses

}  // namespace field
