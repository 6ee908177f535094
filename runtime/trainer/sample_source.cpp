// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/sample_source.hpp>

#include <rankc/runtime/failure.hpp>
#include <rankc/trainer/hash.hpp>
#include <rankc/trainer/permutation.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <vector>

namespace rankc::runtime {

namespace {
constexpr std::uint64_t first_synthetic_held = std::uint64_t{1} << 40;

/// How many of `all` a share keeps for evaluation: at least one where it keeps any.
std::uint64_t held_of(std::uint64_t all, double share) {
  if (share <= 0) return 0;
  return std::max<std::uint64_t>(1,
                                 static_cast<std::uint64_t>(std::llround(share * static_cast<double>(all))));
}
}  // namespace

sample_source::sample_source(const data_source& from, int vocab, int seq, const sample_order& order)
    : from_(from),
      shuffle_(order.shuffle),
      vocab_(static_cast<std::uint64_t>(vocab)),
      seq_(static_cast<std::uint64_t>(seq)) {
  if (from.from == data_source::kind::files) open(vocab, order);
}

void sample_source::open(int vocab, const sample_order& order) {
  tokens_.emplace(from_.path, vocab);
  const std::uint64_t tokens = tokens_->size();
  if (tokens < seq_ + 1)
    throw failure(1, "RC6135: {} holds {} tokens, but one sample takes {} (seq {} and the token after it)",
                  from_.path, tokens, seq_ + 1, seq_);
  const std::vector<token_piece>& pieces = tokens_->pieces();
  if (shuffle_.how == shuffle_spec::kind::megatron) {
    if (!tokens_->has_sequences())
      throw failure(2,
                    "RC6136: --shuffle megatron orders the sequences of a .idx file, but {} has none; give "
                    "--shuffle none or a SEED",
                    from_.path);
    const std::uint64_t held = std::min<std::uint64_t>(held_of(pieces.size(), order.held_out), pieces.size());
    std::vector<std::int32_t> lengths;
    for (std::size_t i = 0; i < pieces.size() - held; ++i)
      lengths.push_back(static_cast<std::int32_t>(pieces[i].count));
    order_ =
        order_of_megatron(lengths, static_cast<std::int64_t>(seq_), static_cast<std::uint32_t>(shuffle_.seed),
                          static_cast<std::int64_t>(shuffle_.samples));
    windows_ = order_->samples();
    first_held_ = held > 0 ? pieces[pieces.size() - held].first : tokens;
    held_ = tokens > first_held_ + seq_ ? (tokens - first_held_ - 1) / seq_ : 0;
    if (held > 0 && held_ == 0)
      throw failure(1, "RC6137: {} has less than a sample in its last {} sequences; hold out a larger share",
                    from_.path, held);
    return;
  }
  const std::uint64_t all = (tokens - 1) / seq_;
  held_ = held_of(all, order.held_out);
  if (held_ >= all)
    throw failure(1,
                  "RC6138: {} holds {} samples of {} tokens, and a held-out share of {} leaves none to train "
                  "on; give more data, or --eval-data",
                  from_.path, all, seq_, fmt::format("{}", order.held_out));
  windows_ = all - held_;
  first_held_ = windows_ * seq_;
}

int sample_source::synthetic(std::uint64_t s, std::uint64_t t) const {
  if (from_.from == data_source::kind::rand)
    return static_cast<int>(splitmix64(s * (seq_ + 1) + t + from_.seed) % vocab_);
  const std::uint64_t start = splitmix64(2 * s + from_.seed) % vocab_,
                      stride = 1 + splitmix64(2 * s + 1 + from_.seed) % 7;
  return static_cast<int>((start + stride * t) % vocab_);
}

void sample_source::sample(data_part which, std::uint64_t s, std::int32_t* tokens) const {
  const bool held = which == data_part::held_out;
  if (!tokens_) {
    for (std::uint64_t t = 0; t <= seq_; ++t) tokens[t] = synthetic(held ? first_synthetic_held + s : s, t);
    return;
  }
  if (held) return tokens_->copy(first_held_ + s % held_ * seq_, seq_ + 1, tokens);
  const std::uint64_t place = s % windows_;
  if (order_) return sample_of_order(place, tokens);
  const bool drawn = shuffle_.how == shuffle_spec::kind::windows;
  tokens_->copy((drawn ? permuted(place, windows_, shuffle_.seed, s / windows_) : place) * seq_, seq_ + 1,
                tokens);
}

void sample_source::sample_of_order(std::uint64_t s, std::int32_t* tokens) const {
  auto [d, offset] = order_->starts[order_->shuffle[s]];
  for (std::uint64_t missing = seq_ + 1; missing > 0; ++d, offset = 0) {
    const token_piece& piece =
        tokens_->pieces()[static_cast<std::size_t>(order_->sequences[static_cast<std::size_t>(d)])];
    const std::uint64_t skipped = static_cast<std::uint64_t>(offset),
                        count = std::min(missing, piece.count - skipped);
    tokens_->copy(piece, skipped, count, tokens);
    tokens += count;
    missing -= count;
  }
}

std::optional<std::uint64_t> sample_source::epoch(data_part which) const {
  if (!tokens_) return std::nullopt;
  return which == data_part::held_out ? held_ : windows_;
}

std::string sample_source::text() const {
  if (from_.from == data_source::kind::arith) return fmt::format("arithmetic sequences, seed {}", from_.seed);
  if (from_.from == data_source::kind::rand) return fmt::format("random tokens, seed {}", from_.seed);
  std::string out = fmt::format("{}: {} tokens", from_.path, tokens_->size());
  if (tokens_->files() != 1) out += fmt::format(" in {} files", tokens_->files());
  if (tokens_->is_text()) out += fmt::format("; byte entropy {:.4f} nats", byte_entropy(*tokens_));
  if (const auto& skipped = tokens_->skipped(); !skipped.empty()) {
    const std::size_t named = std::min<std::size_t>(skipped.size(), 3);
    out += fmt::format("; {} skipped: {}{}", tokens_->is_text() ? "binary files" : "files without tokens",
                       fmt::join(skipped.begin(), skipped.begin() + static_cast<std::ptrdiff_t>(named), ", "),
                       skipped.size() > named ? fmt::format(" and {} more", skipped.size() - named) : "");
  }
  return out;
}

}  // namespace rankc::runtime
