// SPDX-License-Identifier: Apache-2.0
// The texts of `--data` and `--shuffle`.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rankc::runtime {

struct data_source {
  enum class kind { arith, rand, files, arrays } from;
  std::uint64_t seed = 0;  // arith, rand
  std::string path;        // files; for arrays a folder of .npy files
  double weight = 1;
  std::string labels{};  // files of labels for Megatron's tokens; empty: the next tokens are the labels
};

/// A source as --data spells it, without its weight.
std::string source_text(const data_source&);

struct data_spec {
  std::vector<data_source> sources;
};

/// Reads `arith:SEED`, `rand:SEED`, `arrays:DIR`, a file, a folder, a pattern of files, or several of these
/// with weights: `A:0.7,B:0.3`. `labels` is the text of --labels.
/// Errors: failure (2) for any other text, for labels with several sources, and for labels with a source that
/// has no files.
data_spec parse_data_spec(std::string_view text, const std::string& labels = {});

/// The order of a file's windows: sequential, shuffled in each epoch, or Megatron's.
struct shuffle_spec {
  enum class kind { none, windows, megatron } how = kind::none;
  std::uint64_t seed = 0;
  std::uint64_t samples = 0;  // the number of samples that Megatron's order covers; 0: one epoch

  bool operator==(const shuffle_spec&) const = default;
};

/// Reads `none`, `SEED` or `megatron:SEED[:SAMPLES]`.
/// Errors: failure (2) for anything else.
shuffle_spec parse_shuffle(std::string_view text);

}  // namespace rankc::runtime
