// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/data.hpp>

#include <rankc/runtime/failure.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace rankc::runtime {

namespace {
std::vector<double> shares_of(const data_spec& spec) {
  std::vector<double> shares;
  for (const data_source& s : spec.sources) shares.push_back(s.weight);
  const double total = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= total;
  return shares;
}
}  // namespace

dataset::dataset(const data_spec& spec, int vocab, int seq, const sample_order& order)
    : seq_(static_cast<std::uint64_t>(seq)), weights_(shares_of(spec)), mixture_(weights_) {
  const bool has_files = std::any_of(spec.sources.begin(), spec.sources.end(),
                                     [](const data_source& s) { return s.from == data_source::kind::files; });
  if (order.shuffle.how != shuffle_spec::kind::none && !has_files)
    throw failure(2,
                  "RC6050: --shuffle orders the data of files, but the samples of arith and rand are drawn "
                  "by their own seed; leave it out");
  for (const data_source& s : spec.sources) sources_.emplace_back(s, vocab, seq, order);
}

void dataset::sample(std::uint64_t s, std::int32_t* tokens, std::int32_t* targets, data_part which) const {
  std::vector<std::int32_t> window(seq_ + 1);
  const mixture::choice from = sources_.size() == 1 ? mixture::choice{0, s} : mixture_.of(s);
  sources_[from.source].sample(which, from.number, window.data());
  std::copy_n(window.begin(), seq_, tokens);
  std::copy_n(window.begin() + 1, seq_, targets);
}

std::string dataset::text() const {
  if (sources_.size() == 1) return sources_[0].text();
  std::string out;
  for (std::size_t i = 0; i < sources_.size(); ++i)
    out += fmt::format("{}{:.4g} of {}", i > 0 ? " + " : "", weights_[i], sources_[i].text());
  return out;
}

std::optional<std::uint64_t> dataset::epoch(data_part which) const {
  std::optional<std::uint64_t> least;
  for (std::size_t i = 0; i < sources_.size(); ++i)
    if (const auto own = sources_[i].epoch(which)) {
      const auto through = static_cast<std::uint64_t>(static_cast<double>(*own) / weights_[i]);
      least = std::min(least.value_or(through), through);
    }
  return least;
}

std::string dataset::epochs_text(std::uint64_t samples) const {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < sources_.size(); ++i)
    if (const auto own = sources_[i].epoch(data_part::trained)) {
      const double epochs = weights_[i] * static_cast<double>(samples) / static_cast<double>(*own);
      words.push_back(fmt::format("{:.2f}{}", epochs, words.empty() ? " epochs" : ""));
      if (sources_.size() > 1) words.back() += fmt::format(" of {}", sources_[i].name());
    }
  return fmt::format("{}", fmt::join(words, ", "));
}

batch read_batch(const description& about, const dataset& data, std::uint64_t first, data_part which) {
  const auto seq = static_cast<std::size_t>(about.seq),
             samples = static_cast<std::size_t>(about.global_batch());
  batch b{std::vector<std::int32_t>(samples * seq), std::vector<std::int32_t>(samples * seq)};
  for (std::size_t i = 0; i < samples; ++i)
    data.sample(first + i, b.tokens.data() + i * seq, b.targets.data() + i * seq, which);
  return b;
}

void set_batch(engine& e, const batch& b) {
  const description& about = e.about();
  const std::size_t count = static_cast<std::size_t>(about.rows) * static_cast<std::size_t>(about.seq);
  const std::int32_t *tokens = b.tokens.data(), *targets = b.targets.data();
  for (int microbatch = 0; microbatch < about.microbatches; ++microbatch)
    for (int dp = 0; dp < about.dp; ++dp, tokens += count, targets += count)
      e.set_batch(dp, microbatch, tokens, targets);
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
