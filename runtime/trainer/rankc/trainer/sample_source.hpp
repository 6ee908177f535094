// SPDX-License-Identifier: Apache-2.0
// One source of samples: each sample, for training or held out, is a function of its number.
#pragma once
#include <rankc/trainer/array_folder.hpp>
#include <rankc/trainer/data_record.hpp>
#include <rankc/trainer/data_spec.hpp>
#include <rankc/trainer/megatron_order.hpp>
#include <rankc/trainer/token_file.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rankc::runtime {

/// The order of the training samples, and the share of files that is held out for evaluation: the last
/// windows, or in Megatron's order the last sequences.
struct sample_order {
  shuffle_spec shuffle;
  double held_out = 0;
};

enum class data_part { trained, held_out };

/// A source whose files are open.
struct opened_source {
  data_source from;
  std::optional<token_stream> tokens{};                  // files
  std::shared_ptr<const array_folder> arrays = nullptr;  // arrays
  std::optional<token_stream> labels{};   // files of --labels; empty: the next tokens are the labels
  std::optional<std::int32_t> ignored{};  // the label that the loss ignores
  bool has_files() const { return tokens || arrays; }
  /// The number of tokens of files or arrays.
  std::uint64_t size() const { return tokens ? tokens->size() : arrays->size(); }
};

/// Opens the sources of a program's samples.
/// Errors: failure (1) that names files that cannot serve, for a mask if the plan ignores no label, and for
/// weights if labels have none; failure (2) for sources that have only tokens, if the program's model
/// declares inputs or labels have weights.
std::vector<opened_source> open_sources(const data_spec&, const description&);
/// Opens sources of tokens. `ignored` is the label that the plan ignores.
std::vector<opened_source> open_sources(const data_spec&, int vocab,
                                        std::optional<std::int32_t> ignored = std::nullopt);

/// The present marks of a source's files. Token files come before their indexes, masks, weights and labels.
std::vector<file_mark> marks_of(const opened_source&);

/// Consecutive windows of `seq` tokens: from `first` to `end`, and in later epochs from 0 to `end`.
struct window_sequence {
  std::uint64_t first, end, seq;

  std::uint64_t epoch() const { return end / seq; }  // the windows of a complete epoch
  /// The first token of window `n`.
  std::uint64_t token(std::uint64_t n) const;
};

/// The first token that a share holds out of the windows of `tokens` tokens.
/// Errors: failure (1) if nothing is left to train on.
std::uint64_t held_from_windows(std::uint64_t tokens, const std::string& name, int seq, double share);
/// Contiguous tokens of a stream.
struct token_range {
  std::uint64_t first, count;
};

/// The first held-out token for a held-out `share`; empty if `share` is 0.
/// Errors: failure (1) if nothing is left to train on.
std::optional<std::uint64_t> held_from(const token_stream&, const std::string& name, int seq,
                                       const sample_order&);

class sample_source {
 public:
  /// `place` is the beginning of the order. Its `held_from`, if set, replaces the share of the order.
  /// Errors: failure (1) that names files that cannot serve; failure (2) for an order that they cannot have.
  sample_source(opened_source, int vocab, int seq, const sample_order&, const source_place& place = {});

  /// Writes the seq tokens of sample `s` and the token after them. Sample s of arith is (start + stride t) %
  /// vocab, of rand a hash of s (seq + 1) + t. The held-out samples of both begin at 2^40, which no run
  /// trains on.
  void sample(data_part, std::uint64_t s, std::int32_t* tokens) const;

  /// Writes the seq tokens, and as targets the labels of the tokens after them: these tokens themselves,
  /// those of --labels, or the ignored label for masked tokens.
  void sample(data_part, std::uint64_t s, std::int32_t* tokens, std::int32_t* targets) const;
  /// Writes all values of a sample. `document_begins` is set to 1 at each token that begins a document of a
  /// .idx file or does not follow its predecessor in the file. The token after the sample is marked likewise.
  /// The only input that a source of tokens has is the weights of the targets.
  void sample(data_part, std::uint64_t s, const sample_view& to) const;

  /// The number of samples of a part before its order repeats; empty for sources that never repeat.
  std::optional<std::uint64_t> epoch(data_part) const;

  const std::string& name() const { return from_.path; }
  const source_place& place() const { return place_; }
  /// A description of the source for the console; for text it includes the entropy of its bytes, for scale.
  std::string text() const;

 private:
  bool has_files() const { return tokens_ || arrays_; }
  std::uint64_t size() const { return tokens_ ? tokens_->size() : arrays_->size(); }
  void arrange(const sample_order&);
  void arrange_as_megatron();
  int synthetic(std::uint64_t s, std::uint64_t t) const;
  std::vector<token_range> ranges_of(data_part, std::uint64_t s) const;
  std::vector<token_range> ranges_of_order(std::uint64_t s) const;
  void mark_documents(data_part, std::uint64_t s, std::uint8_t* begins) const;
  void copy_weights(data_part, std::uint64_t s, double* to) const;

  data_source from_;
  shuffle_spec shuffle_;
  std::uint64_t vocab_, seq_;
  std::optional<token_stream> tokens_;
  std::shared_ptr<const array_folder> arrays_;
  std::optional<token_stream> labels_;
  std::optional<std::int32_t> ignored_;
  source_place place_;
  window_sequence in_turn_{};
  std::uint64_t windows_ = 0, held_ = 0;  // for files: samples of an epoch, and held-out samples
  std::optional<megatron_order> order_;
};

}  // namespace rankc::runtime
