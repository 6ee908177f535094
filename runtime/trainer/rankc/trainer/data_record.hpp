// SPDX-License-Identifier: Apache-2.0
// The data that a run has read: its sources, their files, and the position in each. run.json keeps this
// record, and a resumed run continues from it.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace rankc::runtime {

/// The path, size and hash of a file when a run opened it.
struct file_mark {
  std::string path;
  std::uint64_t bytes = 0;
  std::string hash;  // XXH3 of the first and the last MiB

  bool has_bytes_of(const file_mark& other) const { return bytes == other.bytes && hash == other.hash; }
};

/// Errors: failure (1) if the file cannot be read.
file_mark mark_of(const std::filesystem::path&);

/// The beginnings of a source's order and of its held-out part.
struct source_place {
  std::uint64_t first_sample = 0;            // the number of the first sample in the source's order
  std::uint64_t first_token = 0;             // the first token of the first window, if windows are contiguous
  std::optional<std::uint64_t> held_from{};  // the first held-out token; empty: no token is held out
};

struct source_record {
  std::string name;                       // as --data spells it, without the weight
  double share = 1;                       // the source's share of the samples
  std::uint64_t samples = 0, tokens = 0;  // trained on since the first step of the run
  int seq = 0;                            // the seq of the samples that `place` counts
  std::string shuffle{};                  // the order of these samples, as --shuffle spells it
  source_place place{};
  std::vector<file_mark> files{};  // empty for arith and rand
};

/// Samples that a run skips: `count` samples before sample `at`, by the numbering before this gap.
struct sample_gap {
  std::uint64_t at, count;
};

struct data_record {
  std::uint64_t first = 0;                           // the first sample of the run that is from this mixture
  std::vector<sample_gap> gaps{};                    // in the order in which they were given
  std::vector<source_record> sources{};              // the mixture's sources, in its order
  std::vector<source_record> earlier{};              // sources that the run no longer reads
  std::optional<std::vector<file_mark>> held_out{};  // the files of --eval-data
};

/// The number in the mixture of the run's sample `s`.
std::uint64_t sample_of_mixture(const data_record&, std::uint64_t s);

/// True if two lists hold the same bytes in the same order; the paths may differ.
bool hold_same_bytes(const std::vector<file_mark>&, const std::vector<file_mark>&);

/// A text of the first difference between files and those of a checkpoint.
std::string difference(const std::vector<file_mark>& before, const std::vector<file_mark>& now);

}  // namespace rankc::runtime
