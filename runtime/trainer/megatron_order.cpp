// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/megatron_order.hpp>

#include <rankc/runtime/failure.hpp>

#include <bit>
#include <limits>
#include <numeric>

namespace rankc::runtime {

numpy_random::numpy_random(std::uint32_t seed) {
  state_[0] = seed;
  for (std::uint32_t i = 1; i < state_.size(); ++i)
    state_[i] = 1812433253u * (state_[i - 1] ^ (state_[i - 1] >> 30)) + i;
}

std::uint32_t numpy_random::next() {
  if (used_ == state_.size()) {
    for (std::size_t k = 0; k < state_.size(); ++k) {
      const std::uint32_t y = (state_[k] & 0x80000000u) | (state_[(k + 1) % 624] & 0x7fffffffu);
      state_[k] = state_[(k + 397) % 624] ^ (y >> 1) ^ (y & 1 ? 0x9908b0dfu : 0);
    }
    used_ = 0;
  }
  std::uint32_t y = state_[used_++];
  y ^= y >> 11;
  y ^= (y << 7) & 0x9d2c5680u;
  y ^= (y << 15) & 0xefc60000u;
  return y ^ (y >> 18);
}

std::size_t numpy_random::at_most(std::size_t largest) {
  const std::size_t mask = std::bit_ceil(largest + 1) - 1;
  std::size_t drawn;
  do {
    drawn = next();
    if (mask > std::numeric_limits<std::uint32_t>::max()) drawn = drawn << 32 | next();
    drawn &= mask;
  } while (drawn > largest);
  return drawn;
}

namespace {

/// Appends the sequence numbers of some epochs, shuffled over all of these epochs together.
void append_epochs(std::vector<std::int32_t>& to, std::size_t sequences, std::int64_t epochs,
                   numpy_random& random) {
  const std::size_t begin = to.size();
  to.resize(begin + sequences * static_cast<std::size_t>(epochs));
  for (std::size_t i = begin; i < to.size(); ++i) to[i] = static_cast<std::int32_t>((i - begin) % sequences);
  random.shuffle(std::span(to).subspan(begin));
}

std::vector<megatron_order::sample_start> sample_starts(std::span<const std::int32_t> lengths,
                                                        std::span<const std::int32_t> sequences,
                                                        std::int64_t seq, std::int64_t samples, int extra) {
  std::vector<megatron_order::sample_start> out{{0, 0}};
  out.reserve(static_cast<std::size_t>(samples) + 1);
  std::size_t d = 0;
  std::int64_t offset = 0;
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    for (std::int64_t missing = seq + extra; missing > 0;) {
      const std::int64_t length = lengths[static_cast<std::size_t>(sequences[d])] - offset;
      missing -= length;
      if (missing <= 0) offset += missing + length - extra;
      else if (d + 1 == sequences.size()) {
        offset = lengths[static_cast<std::size_t>(sequences[d])] - extra;
        break;
      } else {
        ++d;
        offset = 0;
      }
    }
    out.push_back({static_cast<std::int32_t>(d), static_cast<std::int32_t>(offset)});
  }
  return out;
}

}  // namespace

megatron_order order_of_megatron(std::span<const std::int32_t> lengths, std::int64_t seq, std::uint32_t seed,
                                 std::int64_t samples, bool extra) {
  const int x = extra ? 1 : 0;
  const auto tokens = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  if (tokens - x < seq)
    throw failure(1, "RC6120: the sequences hold {} tokens, but one sample takes {}; give more data", tokens,
                  seq + x);
  const std::int64_t needed = samples * seq + x, epochs = samples == 0 ? 1 : (needed + tokens - 1) / tokens;
  if (epochs * static_cast<std::int64_t>(lengths.size()) > std::numeric_limits<std::int32_t>::max())
    throw failure(1,
                  "RC6121: {} sequences in {} epochs are more than the 2^31 - 1 that Megatron's order can "
                  "count; take fewer samples",
                  lengths.size(), epochs);
  const std::int64_t before_last = ((epochs - 1) * tokens - x) / seq, of_last = samples - before_last;
  const bool last_apart =
      epochs > 1 && of_last < static_cast<std::int64_t>(0.8 * static_cast<double>((tokens - x) / seq));
  numpy_random random(seed);
  megatron_order order;
  order.epochs = static_cast<std::int32_t>(epochs);
  append_epochs(order.sequences, lengths.size(), last_apart ? epochs - 1 : epochs, random);
  if (last_apart) append_epochs(order.sequences, lengths.size(), 1, random);
  const std::int64_t all = (epochs * tokens - x) / seq;
  order.starts = sample_starts(lengths, order.sequences, seq, all, x);
  order.shuffle.resize(static_cast<std::size_t>(all));
  std::iota(order.shuffle.begin(), order.shuffle.end(), 0u);
  const std::span<std::uint32_t> drawn(order.shuffle);
  const auto first = static_cast<std::size_t>(last_apart ? before_last : all);
  random.shuffle(drawn.first(first));
  if (last_apart) random.shuffle(drawn.subspan(first));
  return order;
}

}  // namespace rankc::runtime
