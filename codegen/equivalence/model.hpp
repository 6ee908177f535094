// SPDX-License-Identifier: Apache-2.0
// The model on one device, as terms: the loss, the gradient of each parameter by reverse mode over the facts,
// the norm, and the results of the optimizer.
#pragma once
#include <rankc/codegen/specification.hpp>

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fact_table.hpp"
#include "term.hpp"

namespace rankc::codegen::algebra {

struct holding;

/// The inputs of a result other than its operands.
struct attributes {
  std::int64_t rows = 0, seq = 0;
  double number = 0;
  std::array<std::int64_t, 26> sizes{};  // axes that the row's facts name, by letter; others: 0
  specification::rounding operands = specification::rounding::none;
  attention_setting attention = {};
  std::int64_t& size(char letter) { return sizes[static_cast<std::size_t>(letter - 'a')]; }
  std::int64_t size(char letter) const { return sizes[static_cast<std::size_t>(letter - 'a')]; }
};
/// The result of a function of whole operands.
term result_of(const fact&, int equation, const term* operands, const attributes&);
/// The summand for an operand that is repeated, or that is concatenated with others.
term addend_of(const fact&, int equation, int operand, term of, const attributes&);
/// The scores of queries and keys in a row of attention. Its result and its log-sum-exps have the same
/// scores.
term scores_of(const fact&, const term& queries, const term& keys, const attributes&);

/// The cosines and sines of positions.
inline term rotary_table(double theta, std::int64_t dim, const rope_scaling& s) {
  return hasher(hash_of::rotary_table)
         << theta << static_cast<word>(dim) << static_cast<word>(s.by) << s.factor << s.low_freq_factor
         << s.high_freq_factor << static_cast<word>(s.original_positions) << s.share;
}
/// The sum of the squares of a gradient.
inline term squares_of(term gradient) {
  return gradient.is_zero() ? zero : term(hasher(hash_of::squares) << gradient);
}
inline term updated(int which, const term (&state)[3], term gradient, term norm) {
  return hasher(hash_of::updated) << static_cast<word>(which) << state[0] << state[1] << state[2] << gradient
                                  << norm;
}
/// The bias of a router's choice after its update.
inline term balanced(term bias, term choices, const load_balance& by) {
  return hasher(hash_of::balanced) << bias << choices << by.rate << by.mean;
}

class model {
 public:
  struct parameter {
    std::vector<std::int64_t> shape;
    bool trainable = true;
    load_balance balances{};
    term state[3];  // weight, first and second moment
    term gradient = zero;
    term after[3];
    std::vector<term> addends = {};  // addends of the gradient, one for each use
  };

  /// Errors: refusal where a row has no facts, or the facts have no derivative for a gradient.
  explicit model(const specification&);

  const fact_table& facts() const { return facts_; }
  std::int64_t tokens() const { return spec_.tokens; }
  /// An input that the model declares.
  /// Errors: refusal if it declares none of this name.
  const specification::input& input_of(const std::string& name) const;
  bool trains() const { return spec_.trains(); }
  const specification::update& optimizer() const { return spec_.optimizer; }
  /// How the recipe rounds the operands of a term.
  specification::rounding rounding_of(term) const;
  /// Whether the recipe rounds any operands in this way.
  bool rounds(specification::rounding) const;
  const std::map<std::string, parameter, std::less<>>& parameters() const { return parameters_; }
  /// The parameter that has a weight, with its name; null if none has it.
  const std::pair<const std::string, parameter>* owner(term weight) const;
  term loss() const { return loss_; }
  /// The loss of the last layer, without side losses.
  term last_loss() const { return last_loss_; }
  term norm() const { return norm_; }
  /// Terms that the ranks with the loss add to the squared norm. In a step without labels such a term is
  /// minus infinity, and no rank applies the step.
  const std::set<term>& skipped() const { return skipped_; }
  std::size_t known_terms() const { return known_.size(); }
  /// Whether the model has a term.
  bool has(term t) const { return find(t) >= 0; }
  /// Whether a buffer holds a term of the model, or a part of a sum of the model.
  bool has(const holding&) const;
  /// Whether the model has a sum of this shape with too many addends to list its parts.
  bool has_large_sum_like(const holding&) const;
  /// The size of a dim of a term; -1 if the model does not determine it.
  std::int64_t size(term, std::size_t dim) const;
  /// The order of expert slots that a term gives; zero if it gives none.
  term arrangement(term) const;
  /// The number of slots that experts take of an order of slots; {} if it has no limit.
  taken_of_group limit(term order) const;
  /// The length of the sequences of the op that computes a term; 0 for other terms.
  std::int64_t sequence(term) const;
  /// "layers.2: linear"; for a term that the model lacks, a phrase that says so.
  std::string name(term) const;

 private:
  struct known {
    term is;
    std::string name;
    const std::vector<std::int64_t>* shape = nullptr;
    const std::pair<const std::string, parameter>* owner = nullptr;  // if the term is a weight
  };
  /// A sum of the model, in any order of its addends.
  struct sum {
    std::vector<term> addends;
    std::string name;
    std::optional<std::vector<std::int64_t>> shape = {};  // nothing: a sum of one op, which has few addends
  };
  struct layer_values {
    std::vector<term> values, gradients;
    std::vector<std::vector<term>> addends;  // by gradient
  };

  int find(term) const;
  void know(term, std::string name, const std::vector<std::int64_t>* shape);
  void know_sums();
  void know_parts(const std::vector<term>& addends, const std::string& name);
  void put(int known);
  void begin();
  using carried_terms = std::map<std::string, term>;
  void forward(std::size_t use, term input, const carried_terms&);
  void backward(std::size_t use);
  void backward_op(std::size_t use, const specification::op&);
  std::vector<term> operands(std::size_t use, const specification::op&, const fact&) const;
  attributes attributes_of(const specification::layer&, const specification::op&, const fact&) const;
  void apply(const fact&, std::vector<term>& ports, const attributes&, const std::string& where);
  void skip_without(const term& count);
  void know_arrangement(const fact&, const term& result, const term& choice, const attributes&);

  const specification& spec_;
  const fact_table facts_;
  std::vector<known> known_;
  std::vector<int> index_;  // by fingerprint: the index in known_, or -1
  std::set<term> skipped_;  // addends of the squared norm, by which ranks skip a step without labels
  std::map<term, term> arrangements_;
  std::map<term, taken_of_group> limits_;
  std::map<term, std::int64_t> sequences_;
  std::map<term, specification::rounding> roundings_;
  std::map<std::string, parameter, std::less<>> parameters_;
  std::vector<layer_values> uses_;
  std::vector<sum> sums_;
  std::vector<std::vector<std::int64_t>> large_sums_;  // shapes of sums whose parts are not all listed
  const term unit_gradient_ = leaf("gradient", "of the loss");
  term loss_ = zero, last_loss_ = zero, norm_ = zero;
};

}  // namespace rankc::codegen::algebra
