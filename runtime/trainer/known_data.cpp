// SPDX-License-Identifier: Apache-2.0
#include "known_data.hpp"

#include "trained_file.hpp"
#include <rankc/runtime/failure.hpp>
#include <rankc/trainer/data.hpp>
#include <rankc/trainer/mixture.hpp>

#include <algorithm>
#include <cstdint>

namespace rankc::runtime {
namespace {

/// The samples of each source among the first `n` of a mixture.
std::vector<std::uint64_t> counts_of(const std::vector<double>& shares, std::uint64_t n) {
  if (shares.size() == 1) return {n};
  const mixture turns(shares);
  std::vector<std::uint64_t> counts;
  for (std::size_t i = 0; i < shares.size(); ++i) counts.push_back(turns.count(i, n));
  return counts;
}

data_record record_without_marks(const run_state& saved) try {
  const data_spec spec = parse_data_spec(saved.data);
  const std::vector<double> shares = shares_of(spec);
  const std::vector<std::uint64_t> samples = counts_of(shares, saved.samples);
  data_record record;
  for (std::size_t i = 0; i < shares.size(); ++i)
    record.sources.push_back({.name = source_text(spec.sources[i]),
                              .share = shares[i],
                              .samples = samples[i],
                              .tokens = samples[i] * static_cast<std::uint64_t>(saved.seq),
                              .seq = saved.seq,
                              .shuffle = saved.shuffle});
  return record;
} catch (const failure&) {  // the files are gone, so no source is known
  return {};
}

std::vector<known_source> sources_after(const data_record& record, std::uint64_t samples) {
  std::vector<known_source> known;
  std::vector<double> shares;
  for (const source_record& s : record.sources) {
    known.push_back({.record = s, .is_current = true});
    shares.push_back(s.share);
  }
  if (!shares.empty()) {
    const std::vector<std::uint64_t> counts = counts_of(shares, sample_of_mixture(record, samples));
    for (std::size_t i = 0; i < counts.size(); ++i) known[i].record.place.first_sample += counts[i];
  }
  for (const source_record& s : record.earlier) known.push_back({.record = s, .is_current = false});
  return known;
}

}  // namespace

known_data::known_data(const run_state& saved)
    : record_(saved.read ? *saved.read : record_without_marks(saved)),
      sources_(sources_after(record_, saved.samples)) {}

std::size_t known_data::take(const opened_source& source, const std::vector<file_mark>& files) {
  const std::string name = source_text(source.from);
  const auto at = std::find_if(sources_.begin(), sources_.end(), [&](const known_source& k) {
    const std::vector<file_mark>& before = k.record.files;
    return !k.is_taken && (before.empty() ? k.record.name == name : hold_same_bytes(before, files));
  });
  if (at != sources_.end()) at->is_taken = true;
  return static_cast<std::size_t>(at - sources_.begin());
}

const known_source* known_data::find_name(const std::string& name) const {
  const auto at = std::find_if(sources_.begin(), sources_.end(),
                               [&](const known_source& k) { return !k.is_taken && k.record.name == name; });
  return at == sources_.end() ? nullptr : &*at;
}

bool known_data::has_trained_on(const opened_source& source, const std::vector<file_mark>& files) const {
  const auto is_same = [](const file_mark& f, const file_mark& trained) {
    return f.has_bytes_of(trained) || f.path == trained.path;
  };
  return std::any_of(sources_.begin(), sources_.end(), [&](const known_source& k) {
    return k.record.tokens > 0 && trained_file(source, files, k.record.files, is_same) != nullptr;
  });
}

}  // namespace rankc::runtime
