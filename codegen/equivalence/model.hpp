// SPDX-License-Identifier: Apache-2.0
// The model on one device, as terms: the loss, the gradient of each parameter by reverse mode over the facts,
// the norm and what the optimizer makes of them.
#pragma once
#include <rankc/codegen/specification.hpp>

#include <array>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "facts.hpp"
#include "term.hpp"

namespace rankc::codegen::algebra {

/// What a result depends on beside its operands.
struct attributes {
  std::int64_t rows = 0, seq = 0;
  double number = 0;
  std::array<std::int64_t, 26> sizes{};  // of the axes that the row's facts name, by letter; others: 0
  specification::rounding operands = specification::rounding::none;
  std::int64_t& size(char letter) { return sizes[static_cast<std::size_t>(letter - 'a')]; }
  std::int64_t size(char letter) const { return sizes[static_cast<std::size_t>(letter - 'a')]; }
};
/// Errors: unknown_row.
const fact& fact_of(const std::string& row);

/// The result of a function of whole operands.
term result_of(const fact&, int equation, const term* operands, const attributes&);
/// What an operand that is repeated, or put beside others, is as a summand.
term addend_of(const fact&, int equation, int operand, term of, const attributes&);

/// The cosines and sines of positions.
inline term rotary_table(double theta, std::int64_t dim, const rope_scaling& s) {
  return hasher(1) << theta << static_cast<word>(dim) << static_cast<word>(s.by) << s.factor
                   << s.low_freq_factor << s.high_freq_factor << static_cast<word>(s.original_positions);
}
/// The sum of a gradient's squares; what becomes of a weight (0) or of its moments (1, 2).
inline term squares_of(term gradient) { return gradient.is_zero() ? zero : term(hasher(2) << gradient); }
inline term updated(int which, const term (&state)[3], term gradient, term norm) {
  return hasher(3) << static_cast<word>(which) << state[0] << state[1] << state[2] << gradient << norm;
}
/// What becomes of the bias of a router's choice.
inline term balanced(term bias, term choices, const load_balance& by) {
  return hasher(6) << bias << choices << by.rate << by.mean;
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
  };

  /// Errors: refusal where a row has no facts, or a gradient no rule.
  explicit model(const specification&);

  std::int64_t tokens() const { return spec_.tokens; }
  const specification::update& optimizer() const { return spec_.optimizer; }
  /// How the recipe rounds what makes a term.
  specification::rounding rounding_of(term) const;
  /// Whether the recipe rounds anything so.
  bool rounds(specification::rounding) const;
  const std::map<std::string, parameter, std::less<>>& parameters() const { return parameters_; }
  /// The parameter that has a weight, and its name; null where none has.
  const std::pair<const std::string, parameter>* owner(term weight) const;
  term loss() const { return loss_; }
  term norm() const { return norm_; }
  /// Whether the model has a term.
  bool has(term t) const { return find(t) >= 0; }
  /// The size of a dim of a term: -1 where the model says nothing of it.
  std::int64_t size(term, std::size_t dim) const;
  /// Of a term that says where slots of tokens lie, what it is of; 0 where it says nothing of it.
  word arrangement(term) const;
  /// What experts take of an order of slots; of others, {}.
  taken_of_group limit(word order) const;
  /// Of a result of an op of sequences, how long these are; 0 of others.
  std::int64_t sequence(term) const;
  /// "layers.2: linear"; of a term that the model has not, that.
  std::string name(term) const;

 private:
  struct known {
    term is;
    std::string name;
    const std::vector<std::int64_t>* shape = nullptr;
    const std::pair<const std::string, parameter>* owner = nullptr;  // of a weight
  };
  struct layer_values {
    std::vector<term> values, gradients;
  };

  int find(term) const;
  void know(term, std::string name, const std::vector<std::int64_t>* shape);
  void put(int known);
  void begin();
  void forward(std::size_t use, term input, term statistics);
  void backward(std::size_t use);
  void backward_op(std::size_t use, const specification::op&);
  std::vector<term> operands(std::size_t use, const specification::op&, const fact&) const;
  attributes attributes_of(const specification::layer&, const specification::op&, const fact&) const;
  void apply(const fact&, std::vector<term>& ports, const attributes&, const std::string& where);
  void know_arrangement(const fact&, const term& result, const term& choice, const attributes&);

  const specification& spec_;
  std::vector<known> known_;
  std::vector<int> index_;  // by fingerprint: into known_, -1
  std::map<word, word> arrangements_;
  std::map<word, taken_of_group> limits_;
  std::map<word, std::int64_t> sequences_;
  std::map<word, specification::rounding> roundings_;
  std::map<std::string, parameter, std::less<>> parameters_;
  std::vector<layer_values> uses_;
  term loss_ = zero, norm_ = zero;
};

}  // namespace rankc::codegen::algebra
