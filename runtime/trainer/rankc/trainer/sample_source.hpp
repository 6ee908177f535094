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

/// The order of the samples for training, and the share of files that is held out for evaluation: the last
/// windows, or in Megatron's order the last sequences.
struct sample_order {
  shuffle_spec shuffle;
  double held_out = 0;
};

enum class data_part { trained, held_out };

/// A source whose files are open.
struct opened_source {
  data_source from;
  std::optional<token_stream> tokens{};                  // of files
  std::shared_ptr<const array_folder> arrays = nullptr;  // of arrays
  std::optional<token_stream> labels{};                  // of --labels; none: the tokens are the labels
  std::optional<std::int32_t> ignored{};                 // the label that the loss ignores
  bool has_files() const { return tokens || arrays; }
  /// The tokens of files or arrays.
  std::uint64_t size() const { return tokens ? tokens->size() : arrays->size(); }
};

/// Opens the sources of a program's samples.
/// Errors: failure (1) for files that cannot serve, by name, and for a mask where the plan ignores no label;
/// failure (2) for sources of tokens alone, if the program's model declares inputs.
std::vector<opened_source> open_sources(const data_spec&, const description&);
/// Opens sources of tokens. `ignored` is the label that the plan ignores.
std::vector<opened_source> open_sources(const data_spec&, int vocab,
                                        std::optional<std::int32_t> ignored = std::nullopt);

/// The files of a source as they are now. Token files come before their indexes, masks and labels.
std::vector<file_mark> marks_of(const opened_source&);

/// Windows of `seq` tokens that follow one another: from `first` to `end`, and in later epochs from 0 to
/// `end`.
struct window_sequence {
  std::uint64_t first, end, seq;

  std::uint64_t epoch() const { return end / seq; }  // windows of a complete one
  /// The first token of window `n`.
  std::uint64_t token(std::uint64_t n) const;
};

/// The first token of the windows that a share holds out, of `tokens` tokens.
/// Errors: failure (1) where nothing would be left to train on.
std::uint64_t held_from_windows(std::uint64_t tokens, const std::string& name, int seq, double share);
/// Tokens of a stream that lie one after the other.
struct token_range {
  std::uint64_t first, count;
};

/// Where the first held-out token lies when `share` is held out; nothing where `share` is 0.
/// Errors: failure (1) where nothing would be left to train on.
std::optional<std::uint64_t> held_from(const token_stream&, const std::string& name, int seq,
                                       const sample_order&);

class sample_source {
 public:
  /// `place` says where the order begins, and, where it has `held_from`, replaces the share of the order.
  /// Errors: failure (1) for files that cannot serve, by name; failure (2) for an order that they cannot
  /// have.
  sample_source(opened_source, int vocab, int seq, const sample_order&, const source_place& place = {});

  /// Write the seq tokens of sample `s` and the token after them. Sample s of arith is (start + stride t) %
  /// vocab, of rand a hash of s (seq + 1) + t. The held-out samples of both are those from 2^40 on, which no
  /// run trains on.
  void sample(data_part, std::uint64_t s, std::int32_t* tokens) const;

  /// Write the same as seq tokens, and as targets the labels of the tokens after them: the tokens themselves,
  /// those of --labels, or the ignored label where a mask says so.
  void sample(data_part, std::uint64_t s, std::int32_t* tokens, std::int32_t* targets) const;
  /// Write all values of a sample. `document_begins` is set to 1 at each token, and at the token after the
  /// sample, that begins a document of a .idx file, or that does not follow the token before it in the file.
  void sample(data_part, std::uint64_t s, const sample_view& to) const;

  /// The samples of a part until one comes again; nothing where none does.
  std::optional<std::uint64_t> epoch(data_part) const;

  const std::string& name() const { return from_.path; }
  const source_place& place() const { return place_; }
  /// The source in words for the console; of text with the entropy of its bytes, for scale.
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

  data_source from_;
  shuffle_spec shuffle_;
  std::uint64_t vocab_, seq_;
  std::optional<token_stream> tokens_;
  std::shared_ptr<const array_folder> arrays_;
  std::optional<token_stream> labels_;
  std::optional<std::int32_t> ignored_;
  source_place place_;
  window_sequence in_turn_{};
  std::uint64_t windows_ = 0, held_ = 0;  // of files: samples of an epoch, and held-out ones
  std::optional<megatron_order> order_;
};

}  // namespace rankc::runtime
