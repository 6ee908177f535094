// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/data.hpp>

#include "balanced_documents.hpp"
#include "document_borders.hpp"

#include <rankc/runtime/failure.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace rankc::runtime {

std::vector<double> shares_of(const data_spec& spec) {
  std::vector<double> shares;
  for (const data_source& s : spec.sources) shares.push_back(s.weight);
  const double total = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= total;
  return shares;
}

std::vector<double> shares_of(const std::vector<opened_source>& sources) {
  data_spec spec;
  for (const opened_source& s : sources) spec.sources.push_back(s.from);
  return shares_of(spec);
}

dataset::dataset(const data_spec& spec, int vocab, int seq, const sample_order& order)
    : dataset(open_sources(spec, vocab), vocab, seq, std::vector(spec.sources.size(), order), {}) {}

dataset::dataset(std::vector<opened_source> sources, int vocab, int seq,
                 const std::vector<sample_order>& orders, const data_record& record)
    : seq_(static_cast<std::uint64_t>(seq)),
      shares_(shares_of(sources)),
      mixture_(shares_),
      begins_{.first = record.first, .gaps = record.gaps} {
  const bool has_files =
      std::any_of(sources.begin(), sources.end(), [](const opened_source& s) { return s.has_files(); });
  if (orders.front().shuffle.how != shuffle_spec::kind::none && !has_files)
    throw failure(2,
                  "RC6050: --shuffle orders the data of files, but the samples of arith and rand are drawn "
                  "by their own seed; leave it out");
  for (std::size_t i = 0; i < sources.size(); ++i)
    sources_.emplace_back(std::move(sources[i]), vocab, seq, orders[i],
                          record.sources.empty() ? source_place{} : record.sources[i].place);
}

mixture::choice dataset::choice_of(data_part which, std::uint64_t s) const {
  const std::uint64_t n = which == data_part::trained ? sample_of_mixture(begins_, s) : s;
  return sources_.size() == 1 ? mixture::choice{0, n} : mixture_.of(n);
}

void dataset::sample(std::uint64_t s, std::int32_t* tokens, std::int32_t* targets, data_part which) const {
  sample(s, {tokens, targets}, which);
}

void dataset::sample(std::uint64_t s, const sample_view& to, data_part which) const {
  const mixture::choice from = choice_of(which, s);
  sources_[from.source].sample(which, from.number, to);
}

std::string dataset::text() const {
  if (sources_.size() == 1) return sources_[0].text();
  std::string out;
  for (std::size_t i = 0; i < sources_.size(); ++i)
    out += fmt::format("{}{:.4g} of {}", i > 0 ? " + " : "", shares_[i], sources_[i].text());
  return out;
}

std::optional<std::uint64_t> dataset::epoch(data_part which) const {
  std::optional<std::uint64_t> least;
  for (std::size_t i = 0; i < sources_.size(); ++i)
    if (const auto own = sources_[i].epoch(which)) {
      const auto through = static_cast<std::uint64_t>(static_cast<double>(*own) / shares_[i]);
      least = std::min(least.value_or(through), through);
    }
  return least;
}

bool dataset::holds_out() const {
  return std::none_of(sources_.begin(), sources_.end(),
                      [](const sample_source& s) { return s.epoch(data_part::held_out) == 0; });
}

void dataset::add_read(std::uint64_t first, std::uint64_t samples, data_record& to) const {
  for (std::uint64_t s = first; s < first + samples; ++s) {
    source_record& source = to.sources[choice_of(data_part::trained, s).source];
    source.samples += 1;
    source.tokens += seq_;
  }
}

std::string dataset::epochs_text(std::uint64_t samples, const data_record& read) const {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < sources_.size(); ++i)
    if (const auto own = sources_[i].epoch(data_part::trained)) {
      const std::uint64_t tokens = read.sources.empty() ? 0 : read.sources[i].tokens;
      const double all =
          shares_[i] * static_cast<double>(samples) + static_cast<double>(tokens) / static_cast<double>(seq_);
      words.push_back(
          fmt::format("{:.2f}{}", all / static_cast<double>(*own), words.empty() ? " epochs" : ""));
      if (sources_.size() > 1) words.back() += fmt::format(" of {}", sources_[i].name());
    }
  return fmt::format("{}", fmt::join(words, ", "));
}

batch read_batch(const description& about, const read_sample& read) {
  const auto seq = reads_tokens(about) ? static_cast<std::size_t>(about.seq) : 0,
             samples = static_cast<std::size_t>(about.global_batch());
  batch b{std::vector<std::int32_t>(samples * seq), std::vector<std::int32_t>(samples * seq)};
  const std::vector<input_row> rows = inputs_of(about);
  for (const input_row& row : rows) b.inputs.emplace_back(samples * count_of_sample(about, row));
  std::vector<double*> inputs(rows.size());
  document_borders borders(about);
  b.document_starts.resize(borders.exist() ? samples * seq : 0);
  for (std::size_t i = 0; i < samples; ++i) {
    for (std::size_t k = 0; k < rows.size(); ++k)
      inputs[k] = b.inputs[k].data() + i * count_of_sample(about, rows[k]);
    std::int32_t* const tokens = b.tokens.data() + i * seq;
    read(i, {tokens, b.targets.data() + i * seq, inputs, borders.of_next_sample()});
    if (borders.exist()) borders.write_starts(tokens, b.document_starts.data() + i * seq);
    if (about.ignore_across_documents) borders.ignore_across(b.targets.data() + i * seq, about.ignored_label);
  }
  return b;
}

batch read_batch(const description& about, const dataset& data, std::uint64_t first, data_part which) {
  batch b =
      read_batch(about, [&](std::uint64_t i, const sample_view& to) { data.sample(first + i, to, which); });
  balance_documents(about, b);
  return b;
}

const char* unit_of_loss(const description& about) { return reads_tokens(about) ? " nats per token" : ""; }

void set_batch(engine& e, const batch& b) {
  const description& about = e.about();
  const std::vector<input_row> rows = inputs_of(about);
  std::size_t first = 0;  // sequence
  for (int microbatch = 0; microbatch < about.microbatches; ++microbatch)
    for (int dp = 0; dp < about.dp; ++dp, first += static_cast<std::size_t>(about.rows)) {
      const std::size_t token = first * static_cast<std::size_t>(about.seq);
      if (!b.tokens.empty()) e.set_batch(dp, microbatch, b.tokens.data() + token, b.targets.data() + token);
      if (!b.document_starts.empty()) e.set_document_starts(dp, microbatch, b.document_starts.data() + token);
      std::vector<named_array> given;
      for (std::size_t k = 0; k < rows.size(); ++k)
        given.push_back({rows[k].name, std::span(b.inputs[k])
                                           .subspan(first * count_of_sample(about, rows[k]),
                                                    count_values(about, rows[k]))});
      if (!given.empty()) e.set_inputs(dp, microbatch, given);
    }
}

batch_reader::batch_reader(const description& about, const dataset& data, std::uint64_t first)
    : about_(about), data_(data), first_(first) {
  read_ahead();
}

void batch_reader::read_ahead() {
  ahead_ =
      std::async(std::launch::async, [this, first = first_] { return read_batch(about_, data_, first); });
  first_ += static_cast<std::uint64_t>(about_.global_batch());
}

batch batch_reader::next() {
  batch b = ahead_.get();
  read_ahead();
  return b;
}

}  // namespace rankc::runtime
