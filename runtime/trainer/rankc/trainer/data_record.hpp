// SPDX-License-Identifier: Apache-2.0
// The data that a run has read: its sources, their files, and how far each was read. run.json keeps this
// record, and a resumed run goes on by it.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace rankc::runtime {

/// A file as it was when a run opened it.
struct file_mark {
  std::string path;
  std::uint64_t bytes = 0;
  std::string hash;  // XXH3 of the first and the last MiB

  bool has_bytes_of(const file_mark& other) const { return bytes == other.bytes && hash == other.hash; }
};

/// Errors: failure (1) where the file cannot be read.
file_mark mark_of(const std::filesystem::path&);

/// Where the order of a source begins, and where its held-out part does.
struct source_place {
  std::uint64_t first_sample = 0;            // the number of the first sample in the source's order
  std::uint64_t first_token = 0;             // of the first window, where windows follow one another
  std::optional<std::uint64_t> held_from{};  // the first token that is held out; none: nothing is
};

struct source_record {
  std::string name;                       // as --data spells it, without the weight
  double share = 1;                       // of the samples
  std::uint64_t samples = 0, tokens = 0;  // trained on since the first step of the run
  int seq = 0;                            // of the samples that the place counts
  std::string shuffle{};                  // the order of these, as --shuffle spells it
  source_place place{};
  std::vector<file_mark> files{};  // none for arith and rand
};

/// Samples that a run leaves out: `count` samples before sample `at`, as the samples were numbered before
/// this gap.
struct sample_gap {
  std::uint64_t at, count;
};

struct data_record {
  std::uint64_t first = 0;                           // the sample of the run with which this mixture begins
  std::vector<sample_gap> gaps{};                    // in the order in which they were given
  std::vector<source_record> sources{};              // of the mixture, in its order
  std::vector<source_record> earlier{};              // that the run no longer reads
  std::optional<std::vector<file_mark>> held_out{};  // the files of --eval-data
};

/// The sample of the mixture, counted from its beginning, that is sample `s` of the run.
std::uint64_t sample_of_mixture(const data_record&, std::uint64_t s);

/// Whether two lists hold the same bytes in the same order; the paths may differ.
bool hold_same_bytes(const std::vector<file_mark>&, const std::vector<file_mark>&);

/// How files differ from those of a checkpoint, in words: the first difference.
std::string difference(const std::vector<file_mark>& before, const std::vector<file_mark>& now);

}  // namespace rankc::runtime
