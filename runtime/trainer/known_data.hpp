// SPDX-License-Identifier: Apache-2.0
// The data that a checkpoint knows. The sources of the run that goes on are compared with it.
#pragma once
#include <rankc/trainer/run_state.hpp>
#include <rankc/trainer/sample_source.hpp>

#include <string>
#include <vector>

namespace rankc::runtime {

/// A source that the run has read, at its next sample.
struct known_source {
  source_record record;
  bool is_current;        // in the mixture of the checkpoint
  bool is_taken = false;  // by a source of the run that goes on
};

class known_data {
 public:
  explicit known_data(const run_state& saved);

  /// The record of the checkpoint. For a run.json without a record, it is that of one mixture since the first
  /// step.
  const data_record& record() const { return record_; }
  /// The sources of the mixture in their order, then earlier ones.
  const std::vector<known_source>& sources() const { return sources_; }

  /// Take the source that goes on in `source`: the one with the same bytes; the one with the same name where
  /// there are no marks to compare. Returns its index; sources().size() where none goes on.
  std::size_t take(const opened_source& source, const std::vector<file_mark>& files);

  /// A source of this name that is not taken; nullptr where there is none.
  const known_source* find_name(const std::string& name) const;

  /// Whether samples of a source have been trained on, as its files are or before they changed. `files` are
  /// its marks.
  bool has_trained_on(const opened_source&, const std::vector<file_mark>& files) const;

 private:
  data_record record_;
  std::vector<known_source> sources_;
};

}  // namespace rankc::runtime
