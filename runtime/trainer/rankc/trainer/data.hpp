// SPDX-License-Identifier: Apache-2.0
// The samples that a program trains on. Each is a function of its number, so the order of samples over steps,
// microbatches and ranks is the same for every parallel layout with the same global batch.
#pragma once
#include <rankc/runtime/engine.hpp>
#include <rankc/trainer/mixture.hpp>
#include <rankc/trainer/sample_source.hpp>

#include <cstdint>
#include <functional>
#include <future>
#include <string>
#include <vector>

namespace rankc::runtime {

class dataset {
 public:
  /// Opens the data that `spec` names, for sequences of `seq` tokens below `vocab`.
  /// Errors: failure (1) that names a file that cannot serve; failure (2) for an order that the data cannot
  /// have.
  dataset(const data_spec& spec, int vocab, int seq, const sample_order& order = {});
  /// The same for open sources, each with an order and a place (empty: its beginning). `record` holds the
  /// first sample of their mixture.
  dataset(std::vector<opened_source>, int vocab, int seq, const std::vector<sample_order>&,
          const data_record& record);

  /// Writes the tokens of sample `s` of a part, and as targets the tokens after them.
  /// Shapes: tokens, targets (seq).
  /// Errors: failure (1) for a token that is not below the vocabulary.
  void sample(std::uint64_t s, std::int32_t* tokens, std::int32_t* targets,
              data_part = data_part::trained) const;
  /// Writes all values of sample `s` of a part.
  void sample(std::uint64_t s, const sample_view& to, data_part = data_part::trained) const;

  /// One line for the console.
  std::string text() const;

  /// The samples of a part before one repeats, in the source that ends first; empty if no source ends.
  std::optional<std::uint64_t> epoch(data_part) const;

  /// True if every source has a held-out sample.
  bool holds_out() const;

  /// Counts the training samples [first, first + samples) as read.
  void add_read(std::uint64_t first, std::uint64_t samples, data_record&) const;

  /// The epochs of each finite source after `samples` samples more than `read` counts: "2.50 epochs", or for
  /// several sources "2.50 epochs of A, 0.10 of B".
  std::string epochs_text(std::uint64_t samples, const data_record& read = {}) const;

  const std::vector<sample_source>& sources() const { return sources_; }
  /// The share of the samples that each source has. Units: their sum is 1.
  const std::vector<double>& shares() const { return shares_; }

 private:
  mixture::choice choice_of(data_part, std::uint64_t s) const;

  std::uint64_t seq_;
  std::vector<sample_source> sources_;
  std::vector<double> shares_;
  mixture mixture_;
  data_record begins_;  // the mixture's first sample and its gaps
};

/// The share of the samples that each source has. Units: their sum is 1.
std::vector<double> shares_of(const data_spec&);
std::vector<double> shares_of(const std::vector<opened_source>&);

/// The inputs of a step: tokens and targets if the model reads tokens, its declared inputs, and the position
/// at which each token's document begins if the plan has documents.
/// Shapes: (microbatches, dp, rows, seq) each; inputs (microbatches, dp, rows, numbers of a sample).
struct batch {
  std::vector<std::int32_t> tokens, targets;
  std::vector<std::vector<double>> inputs{};
  std::vector<std::int32_t> document_starts{};
};

/// Writes the values of a sample.
using read_sample = std::function<void(std::uint64_t sample, const sample_view& to)>;

/// Reads samples 0 to global_batch - 1 into a batch. If the plan ignores labels across documents, the label
/// of each document's last token is replaced.
batch read_batch(const description&, const read_sample&);
/// Reads a step's batch. Sample `first` is row 0 of data-parallel rank 0 in microbatch 0. The next samples
/// fill rows first, then data-parallel ranks, then microbatches. With documents, the samples are instead
/// assigned to data-parallel ranks by attention cost (balanced_documents.hpp).
batch read_batch(const description&, const dataset&, std::uint64_t first, data_part = data_part::trained);

/// " nats per token" for a model that reads tokens; empty for other models, whose loss has no unit.
const char* unit_of_loss(const description&);

/// Gives an engine a batch.
void set_batch(engine&, const batch&);
inline void set_batch(engine& e, const dataset& data, std::uint64_t first,
                      data_part which = data_part::trained) {
  set_batch(e, read_batch(e.about(), data, first, which));
}

/// Batches in order. A thread reads the next batch while a step runs.
class batch_reader {
 public:
  /// Begins with sample `first`; `data` and `about` must outlive this.
  batch_reader(const description& about, const dataset& data, std::uint64_t first);
  /// Errors: rethrows an exception of the reading thread.
  batch next();

 private:
  void read_ahead();

  const description& about_;
  const dataset& data_;
  std::uint64_t first_;
  std::future<batch> ahead_;
};

}  // namespace rankc::runtime
