// SPDX-License-Identifier: Apache-2.0
// Each row of the table of ops, computed over the field. Sums and products are exact. A function that is no
// polynomial is drawn, keyed by everything that one of its results depends on: the element, the row, the keys
// of a query. Its gradient is linear in the incoming gradient, with coefficients drawn in the same way.
#pragma once
#include "../numbers/matrix.hpp"

#include <rankc/codegen/specification.hpp>

#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace field {

struct row;
class model_attributes;

/// An op that runs, with its operands by the names of the row's ports.
class call {
 public:
  std::int64_t rows = 0, seq = 0;  // the op's attributes
  double number = 0;
  rankc::attention_setting attention{};
  rankc::codegen::specification::rounding rounds{};  // rounding of its GEMM operands
  model_attributes* noted_by = nullptr;              // for an op of the model: records its attributes
  const model_attributes* held_to = nullptr;  // for an op of a program: its attributes must agree with these
  bool agrees = true;                         // false: the attributes did not agree

  /// Set an operand. Errors: malformed if it has no rows or no columns.
  void give(std::string_view port, matrix m, std::int64_t first = 0);
  /// Request a result of this size. Errors: as give.
  void want(std::string_view port, extent e, std::int64_t first = 0);

  const matrix& in(std::string_view port) const;
  /// Where the rank's part begins in the port's sharded dim.
  std::int64_t first(std::string_view port) const;
  bool wants(std::string_view port) const;
  extent wanted(std::string_view port) const;
  /// Make a result, filled with zeros.
  /// Errors: malformed if a different size was requested.
  matrix& out(std::string_view port, std::int64_t rows, std::int64_t cols, std::int64_t unit = 1);
  /// Make a result of the requested size.
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

/// Errors: malformed if the condition does not hold.
void expect(bool holds, const char* what);

/// For an op on chunks: `number` ranks shard each of `rows` sequences; each rank has a chunk from the front
/// and its mirror image from the back. Returns the index, in whole sequences, of the n-th token when the
/// ranks' tokens are concatenated.
std::int64_t token_of_chunks(const call&, std::int64_t n);

/// Where the documents begin in the op's whole sequences.
/// Errors: malformed if a document begins after its token.
const matrix& starts_of(const call&);

/// A row as text. `ports`: results, then operands. `definition`: the plain rows of a fused row. `backward`:
/// the rows that make the operands' gradients; the gradient of v is called d_v.
struct row {
  std::string_view name;
  std::string_view ports;  // "y = x w"
  void (*compute)(call&) = nullptr;
  std::string_view definition = "";  // "linear t = x w; bias y = t b"
  std::string_view backward = "";    // "linear_dx d_x = d_y w; linear_dw d_w = d_y x"
  std::string_view over = "";        // "y:x y:residual"
  std::string_view strided = "";     // ports whose rows may be strided; the others are contiguous
};

std::span<const row> all_rows();
/// The row with this name. Errors: malformed if there is none.
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
/// Whether a result may replace an operand: each of the operand's elements is read before its address is
/// written, and by nothing else.
bool may_lie_over(const row&, std::string_view result, std::string_view operand);
/// Whether a port's rows may be strided.
bool takes_stride(const row&, std::string_view port);

// The kernels, by subject.
namespace products {
void linear(call&), linear_dx(call&), linear_dw(call&), bias(call&), bias_grad(call&);
}
namespace tables {
void embedding(call&), embedding_grad(call&), position(call&), position_grad(call&), rope(call&),
    rope_grad(call&);
void chunk_position(call&), chunk_position_grad(call&);
void document_position(call&), document_position_grad(call&), document_chunk_position(call&),
    document_chunk_position_grad(call&);
/// The cosines and sines of positions 0 to `positions` - 1.
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
void sink_scores(call&), add_sinks(call&), add_sinks_grad(call&);
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
/// The label of a token without a loss; it is larger than every vocabulary.
inline constexpr element ignored_label = std::uint64_t{1} << 30;

void mask_padding(call&), mask_padding_grad(call&);
void row_max(call&), exp_sums(call&), exp_sums_grad(call&), cross_entropy(call&), cross_entropy_grad(call&);
void count_labels(call&), skip_unlabeled(call&), masked_cross_entropy(call&),
    masked_cross_entropy_grad(call&), sum_weights(call&), weighted_cross_entropy(call&),
    weighted_cross_entropy_grad(call&);
void squared_error(call&), squared_error_grad(call&), sequence_mean(call&), sequence_mean_grad(call&);
}  // namespace losses

}  // namespace field
