// SPDX-License-Identifier: Apache-2.0
// The data that a checkpoint records. The sources of the resumed run are compared with it.
#pragma once
#include <rankc/trainer/run_state.hpp>
#include <rankc/trainer/sample_source.hpp>

#include <string>
#include <vector>

namespace rankc::runtime {

/// A source that the run has read, and the position of the next sample in it.
struct known_source {
  source_record record;
  bool is_current;        // part of the checkpoint's current mixture
  bool is_taken = false;  // matched with a source of the resumed run
};

class known_data {
 public:
  explicit known_data(const run_state& saved);

  /// The checkpoint's record. A run.json without a record is read as one mixture since the first step.
  const data_record& record() const { return record_; }
  /// The sources of the mixture in their order, then earlier ones.
  const std::vector<known_source>& sources() const { return sources_; }

  /// Matches `source` with the recorded source that it continues: the one with the same bytes, or the one
  /// with the same name if there are no file marks to compare. Returns its index; sources().size() for a new
  /// source.
  std::size_t take(const opened_source& source, const std::vector<file_mark>& files);

  /// An unmatched source of this name; nullptr if there is none.
  const known_source* find_name(const std::string& name) const;

  /// True if samples of a source have been trained on, also if its files have changed since. `files` are its
  /// marks.
  bool has_trained_on(const opened_source&, const std::vector<file_mark>& files) const;

 private:
  data_record record_;
  std::vector<known_source> sources_;
};

}  // namespace rankc::runtime
