// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/sample_source.hpp>

#include "ignored_label.hpp"

#include <rankc/runtime/failure.hpp>
#include <rankc/runtime/named_inputs.hpp>
#include <rankc/trainer/hash.hpp>
#include <rankc/trainer/permutation.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>
#include <vector>

namespace rankc::runtime {

namespace {
constexpr std::uint64_t first_synthetic_held = std::uint64_t{1} << 40;

/// The number of samples out of `all` that a share holds out: at least one if the share is not 0.
std::uint64_t held_of(std::uint64_t all, double share) {
  if (share <= 0) return 0;
  return std::max<std::uint64_t>(1,
                                 static_cast<std::uint64_t>(std::llround(share * static_cast<double>(all))));
}

/// Opens the labels of a source. There must be as many as tokens, in the same sequences.
token_stream open_labels(const data_source& from, const token_stream& tokens, int vocab,
                         std::optional<std::int32_t> ignored) {
  token_stream labels(from.labels, {.vocab = vocab, .ignored = ignored, .are_labels = true});
  if (!tokens.has_sequences() || !labels.has_sequences())
    throw failure(1,
                  "RC6220: --labels {} and --data {} must both be .bin files of Megatron with a .idx file; a "
                  ".bin of llm.c has a mask next to it instead",
                  from.labels, from.path);
  const auto &of_tokens = tokens.pieces(), &of_labels = labels.pieces();
  const auto [t, l] =
      std::mismatch(of_tokens.begin(), of_tokens.end(), of_labels.begin(), of_labels.end(),
                    [](const token_piece& a, const token_piece& b) { return a.count == b.count; });
  if (t == of_tokens.end() && l == of_labels.end()) return labels;
  const auto length_of = [](auto at, auto end) { return at == end ? 0 : at->count; };
  throw failure(
      1,
      "RC6221: --labels {} has {} labels in sequence {}, but --data {} has {} tokens there; give each "
      "token of each sequence a label",
      from.labels, length_of(l, of_labels.end()), t - of_tokens.begin(), from.path,
      length_of(t, of_tokens.end()));
}
/// Checks that a source has weights if the plan's labels have weights, and only then.
/// Errors: failure (1).
void check_weights(const opened_source& source, const description& about) {
  if (!about.token_weights) {
    const token_weights* const found = source.tokens ? source.tokens->first_weights() : nullptr;
    if (found == nullptr) return;
    refuse_weights(found->name());
  }
  const std::string without =
      source.tokens ? source.tokens->file_without_weights() : source_text(source.from);
  if (!without.empty())
    throw failure(1,
                  "RC6267: labels of the plan {} have weights, and {} has none; give FILE.bin of llm.c with "
                  "FILE.weights, a float32 for each token, or arrays:DIR with weights.npy",
                  about.name, without);
}

}  // namespace

std::vector<opened_source> open_sources(const data_spec& spec, const description& about) {
  const std::vector<input_row> inputs = declared_inputs_of(about);
  std::vector<opened_source> opened;
  for (const data_source& from : spec.sources) {
    if (from.from == data_source::kind::arrays) {
      opened.push_back({.from = from});
      opened.back().arrays = std::make_shared<array_folder>(from.path, about);
      continue;
    }
    if (!inputs.empty())
      throw failure(
          2,
          "RC6090: the plan {} takes the inputs {}, and {} has tokens and targets only; give --data "
          "arrays:DIR, a folder with a file NAME.npy for each",
          about.name, names_of(inputs), source_text(from));
    opened.push_back(std::move(open_sources({{from}}, about.vocab_used, ignored_label_of(about)).front()));
    check_weights(opened.back(), about);
  }
  return opened;
}

std::vector<opened_source> open_sources(const data_spec& spec, int vocab,
                                        std::optional<std::int32_t> ignored) {
  std::vector<opened_source> opened;
  for (const data_source& from : spec.sources) {
    opened_source& source = opened.emplace_back(opened_source{.from = from, .ignored = ignored});
    if (from.from != data_source::kind::files) continue;
    source.tokens.emplace(from.path, vocab);
    const token_mask* const mask = source.tokens->first_mask();
    if (mask != nullptr && !ignored)
      throw failure(1,
                    "RC6219: {} marks labels to ignore, but this plan ignores none; set "
                    "training{.ignored_label = -100}, or remove the mask to train on all tokens",
                    mask->name());
    if (!from.labels.empty()) source.labels = open_labels(from, *source.tokens, vocab, ignored);
  }
  return opened;
}

std::vector<file_mark> marks_of(const opened_source& source) {
  std::vector<file_mark> marks;
  for (const std::optional<token_stream>* stream : {&source.tokens, &source.labels})
    if (*stream)
      for (const std::filesystem::path& path : (*stream)->paths()) marks.push_back(mark_of(path));
  if (source.arrays)
    for (const std::filesystem::path& path : source.arrays->paths()) marks.push_back(mark_of(path));
  return marks;
}

std::uint64_t window_sequence::token(std::uint64_t n) const {
  const std::uint64_t of_first_epoch = (end - first) / seq;
  if (n < of_first_epoch) return first + n * seq;
  return (n - of_first_epoch) % std::max<std::uint64_t>(1, epoch()) * seq;
}

std::optional<std::uint64_t> held_from(const token_stream& tokens, const std::string& name, int seq,
                                       const sample_order& order) {
  if (order.held_out <= 0) return std::nullopt;
  if (order.shuffle.how == shuffle_spec::kind::megatron) {
    const std::vector<token_piece>& pieces = tokens.pieces();
    const std::uint64_t held = std::min<std::uint64_t>(held_of(pieces.size(), order.held_out), pieces.size()),
                        first = pieces[pieces.size() - held].first;
    if (tokens.size() <= first + static_cast<std::uint64_t>(seq))
      throw failure(1, "RC6137: {} has less than a sample in its last {} sequences; hold out a larger share",
                    name, held);
    return first;
  }
  return held_from_windows(tokens.size(), name, seq, order.held_out);
}

std::uint64_t held_from_windows(std::uint64_t tokens, const std::string& name, int seq, double share) {
  const std::uint64_t all = (tokens - 1) / static_cast<std::uint64_t>(seq), held = held_of(all, share);
  if (held >= all)
    throw failure(1,
                  "RC6138: {} holds {} samples of {} tokens, and a held-out share of {} leaves none to train "
                  "on; give more data, or --eval-data",
                  name, all, seq, fmt::format("{}", share));
  return (all - held) * static_cast<std::uint64_t>(seq);
}

sample_source::sample_source(opened_source source, int vocab, int seq, const sample_order& order,
                             const source_place& place)
    : from_(std::move(source.from)),
      shuffle_(order.shuffle),
      vocab_(static_cast<std::uint64_t>(vocab)),
      seq_(static_cast<std::uint64_t>(seq)),
      tokens_(std::move(source.tokens)),
      arrays_(std::move(source.arrays)),
      labels_(std::move(source.labels)),
      ignored_(source.ignored),
      place_(place) {
  if (has_files()) arrange(order);
}

void sample_source::arrange(const sample_order& order) {
  const std::uint64_t tokens = size();
  if (tokens < seq_ + 1)
    throw failure(1, "RC6135: {} holds {} tokens, but one sample takes {} (seq {} and the token after it)",
                  from_.path, tokens, seq_ + 1, seq_);
  const bool as_megatron = shuffle_.how == shuffle_spec::kind::megatron;
  if (as_megatron && !(tokens_ && tokens_->has_sequences()))
    throw failure(2,
                  "RC6136: --shuffle megatron orders the sequences of a .idx file, but {} has none; give "
                  "--shuffle none or a SEED",
                  from_.path);
  if (!place_.held_from && tokens_)
    place_.held_from = held_from(*tokens_, from_.path, static_cast<int>(seq_), order);
  else if (!place_.held_from && order.held_out > 0)
    place_.held_from = held_from_windows(tokens, from_.path, static_cast<int>(seq_), order.held_out);
  if (const std::uint64_t named = std::max(place_.first_token, place_.held_from.value_or(0)); named > tokens)
    throw failure(65, "RC6140: the checkpoint's run.json names token {} of {}, which has {}", named,
                  from_.path, tokens);
  if (place_.held_from) held_ = (tokens - std::min(tokens, *place_.held_from + 1)) / seq_;
  if (as_megatron) return arrange_as_megatron();
  const std::uint64_t end = place_.held_from.value_or(tokens - 1);
  in_turn_ = {std::min(place_.first_token, end), end, seq_};
  windows_ = in_turn_.epoch();
  if (windows_ == 0)
    throw failure(
        1, "RC6139: {} has {} tokens before its held-out part, but one sample takes {}; give other data",
        from_.path, in_turn_.end, seq_);
}

void sample_source::arrange_as_megatron() {
  std::vector<std::int32_t> lengths;
  for (const token_piece& piece : tokens_->pieces())
    if (!place_.held_from || piece.first < *place_.held_from)
      lengths.push_back(static_cast<std::int32_t>(piece.count));
  order_ =
      order_of_megatron(lengths, static_cast<std::int64_t>(seq_), static_cast<std::uint32_t>(shuffle_.seed),
                        static_cast<std::int64_t>(shuffle_.samples));
  windows_ = order_->samples();
}

int sample_source::synthetic(std::uint64_t s, std::uint64_t t) const {
  if (from_.from == data_source::kind::rand)
    return static_cast<int>(splitmix64(s * (seq_ + 1) + t + from_.seed) % vocab_);
  const std::uint64_t start = splitmix64(2 * s + from_.seed) % vocab_,
                      stride = 1 + splitmix64(2 * s + 1 + from_.seed) % 7;
  return static_cast<int>((start + stride * t) % vocab_);
}

void sample_source::sample(data_part which, std::uint64_t s, std::int32_t* tokens) const {
  if (!tokens_) {
    const std::uint64_t n = (which == data_part::held_out ? first_synthetic_held : place_.first_sample) + s;
    for (std::uint64_t t = 0; t <= seq_; ++t) tokens[t] = synthetic(n, t);
    return;
  }
  for (const token_range& range : ranges_of(which, s)) {
    tokens_->copy(range.first, range.count, tokens);
    tokens += range.count;
  }
}

void sample_source::sample(data_part which, std::uint64_t s, const sample_view& to) const {
  if (arrays_) return arrays_->copy(ranges_of(which, s).front().first / seq_, to);
  sample(which, s, to.tokens, to.targets);
  if (to.document_begins != nullptr && tokens_ && tokens_->has_sequences())
    mark_documents(which, s, to.document_begins);
  if (!to.inputs.empty() && tokens_) copy_weights(which, s, to.inputs.front());
}

/// Copies the weights of the targets of sample `s`: of each of its tokens but the first, and of the one after
/// them.
void sample_source::copy_weights(data_part which, std::uint64_t s, double* to) const {
  std::vector<double> window(seq_ + 1);
  double* next = window.data();
  for (const auto& [first, count] : ranges_of(which, s)) {
    tokens_->copy_weights(first, count, next);
    next += count;
  }
  std::copy_n(window.begin() + 1, seq_, to);
}

void sample_source::mark_documents(data_part which, std::uint64_t s, std::uint8_t* begins) const {
  const std::vector<token_range> ranges = ranges_of(which, s);
  std::uint64_t next = ranges.front().first;  // the next contiguous token of the file
  for (const auto& [first, count] : ranges) {
    if (count == 0) continue;
    tokens_->mark_documents(first, count, begins);
    if (first != next) *begins = 1;
    begins += count;
    next = first + count;
  }
}

void sample_source::sample(data_part which, std::uint64_t s, std::int32_t* tokens,
                           std::int32_t* targets) const {
  std::vector<std::int32_t> window(seq_ + 1);
  sample(which, s, window.data());
  std::copy_n(window.begin(), seq_, tokens);
  std::int32_t* to = window.data();  // is overwritten with the labels
  if (labels_ || (tokens_ && ignored_))
    for (const auto& [first, count] : ranges_of(which, s)) {
      if (labels_) labels_->copy(first, count, to);
      else tokens_->mask(first, count, *ignored_, to);
      to += count;
    }
  std::copy_n(window.begin() + 1, seq_, targets);
}

/// The tokens of sample `s`, and the one after them.
std::vector<token_range> sample_source::ranges_of(data_part which, std::uint64_t s) const {
  const auto window_at = [&](std::uint64_t first) { return std::vector<token_range>{{first, seq_ + 1}}; };
  if (which == data_part::held_out) return window_at(*place_.held_from + s % held_ * seq_);
  const std::uint64_t n = place_.first_sample + s;
  if (order_) return ranges_of_order(n % windows_);
  if (shuffle_.how == shuffle_spec::kind::none) return window_at(in_turn_.token(n));
  return window_at(permuted(n % windows_, windows_, shuffle_.seed, n / windows_) * seq_);
}

std::vector<token_range> sample_source::ranges_of_order(std::uint64_t s) const {
  std::vector<token_range> ranges;
  auto [d, offset] = order_->starts[order_->shuffle[s]];
  for (std::uint64_t missing = seq_ + 1; missing > 0; ++d, offset = 0) {
    const token_piece& piece =
        tokens_->pieces()[static_cast<std::size_t>(order_->sequences[static_cast<std::size_t>(d)])];
    const std::uint64_t skipped = static_cast<std::uint64_t>(offset),
                        count = std::min(missing, piece.count - skipped);
    ranges.push_back({piece.first + skipped, count});
    missing -= count;
  }
  return ranges;
}

std::optional<std::uint64_t> sample_source::epoch(data_part which) const {
  if (!has_files()) return std::nullopt;
  return which == data_part::held_out ? held_ : windows_;
}

std::string sample_source::text() const {
  if (from_.from == data_source::kind::arith) return fmt::format("arithmetic sequences, seed {}", from_.seed);
  if (from_.from == data_source::kind::rand) return fmt::format("random tokens, seed {}", from_.seed);
  if (arrays_) return fmt::format("{}: {}", from_.path, arrays_->text());
  std::string out = fmt::format("{}: {} tokens", from_.path, tokens_->size());
  if (tokens_->files() != 1) out += fmt::format(" in {} files", tokens_->files());
  if (const std::uint64_t labels = tokens_->labels(); labels < tokens_->size())
    out += fmt::format(", of which {} are labels", labels);
  if (labels_) out += fmt::format(", with the labels of {}", from_.labels);
  if (tokens_->first_weights() != nullptr) out += ", each with a weight";
  if (tokens_->is_text()) out += fmt::format("; byte entropy {:.4f} nats", byte_entropy(*tokens_));
  if (const auto& skipped = tokens_->skipped(); !skipped.empty()) {
    const std::size_t named = std::min<std::size_t>(skipped.size(), 3);
    out += fmt::format("; skipped: {}{}",
                       fmt::join(skipped.begin(), skipped.begin() + static_cast<std::ptrdiff_t>(named), ", "),
                       skipped.size() > named ? fmt::format(" and {} more", skipped.size() - named) : "");
  }
  return out;
}

}  // namespace rankc::runtime
