// SPDX-License-Identifier: Apache-2.0
// One source of samples, each a function of its number: what is trained on, and what is held out of that.
#pragma once
#include <rankc/trainer/data_spec.hpp>
#include <rankc/trainer/megatron_order.hpp>
#include <rankc/trainer/token_file.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace rankc::runtime {

/// The order of what is trained on, and the share of files that is kept for evaluation: of windows the last,
/// in Megatron's order of sequences.
struct sample_order {
  shuffle_spec shuffle;
  double held_out = 0;
};

enum class data_part { trained, held_out };

class sample_source {
 public:
  /// Errors: failure (1) for files that cannot serve, by name; failure (2) for an order that they cannot
  /// have.
  sample_source(const data_source&, int vocab, int seq, const sample_order&);

  /// Write the seq tokens of sample `s` and the one after them. arith: (start + stride t) % vocab; rand: a
  /// hash of s (seq + 1) + t; files: windows of seq tokens, again after the last. What is held out of arith
  /// and rand are samples that no run comes to, from 2^40 on.
  void sample(data_part, std::uint64_t s, std::int32_t* tokens) const;

  /// Samples until one comes again; nothing where none does.
  std::optional<std::uint64_t> epoch(data_part) const;

  const std::string& name() const { return from_.path; }
  /// What it is, for the console; text with the entropy of its bytes, for scale.
  std::string text() const;

 private:
  void open(int vocab, const sample_order&);
  int synthetic(std::uint64_t s, std::uint64_t t) const;
  void sample_of_order(std::uint64_t s, std::int32_t* tokens) const;

  data_source from_;
  shuffle_spec shuffle_;
  std::uint64_t vocab_, seq_;
  std::optional<token_stream> tokens_;
  std::uint64_t windows_ = 0, held_ = 0, first_held_ = 0;  // of files; the last in tokens
  std::optional<megatron_order> order_;
};

}  // namespace rankc::runtime
