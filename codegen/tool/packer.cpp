// SPDX-License-Identifier: Apache-2.0
#include "packer.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace rankc::tool {

namespace {

constexpr std::size_t most_held = 1 << 24;  // tokens of a window

}  // namespace

std::vector<std::vector<std::size_t>> best_fit(const std::vector<std::size_t>& lengths, std::size_t length) {
  std::vector<std::size_t> order(lengths.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return lengths[a] > lengths[b]; });
  std::vector<std::vector<std::size_t>> sequences;
  std::multimap<std::size_t, std::size_t> rooms;  // the free tokens of each sequence
  for (const std::size_t i : order) {
    const auto best = rooms.lower_bound(lengths[i]);
    const bool fits = best != rooms.end();
    const std::size_t room = fits ? best->first : length, at = fits ? best->second : sequences.size();
    if (fits) rooms.erase(best);
    else sequences.emplace_back();
    sequences[at].push_back(i);
    rooms.emplace(room - lengths[i], at);
  }
  for (std::vector<std::size_t>& sequence : sequences) std::sort(sequence.begin(), sequence.end());
  std::sort(sequences.begin(), sequences.end());
  return sequences;
}

void packer::add(example one) {
  if (one.ids.size() > length_) {
    ++counts_.cut;
    counts_.lost += one.ids.size() - length_;
    one.ids.resize(length_);
    one.labels.resize(length_);
  }
  if (held_ + one.ids.size() > most_held) pack();
  held_ += one.ids.size();
  window_.push_back(std::move(one));
}

void packer::pack() {
  std::vector<std::size_t> lengths;
  for (const example& one : window_) lengths.push_back(one.ids.size());
  for (const std::vector<std::size_t>& members : best_fit(lengths, length_)) {
    example sequence;
    for (const std::size_t i : members) {
      const example& one = window_[i];
      sequence.ids.insert(sequence.ids.end(), one.ids.begin(), one.ids.end());
      sequence.labels.insert(sequence.labels.end(), one.labels.begin(), one.labels.end());
    }
    sequence.ids.resize(length_, filler_);
    sequence.labels.resize(length_, runtime::label_is_ignored);
    write_(sequence);
    ++counts_.sequences;
  }
  counts_.examples += window_.size();
  counts_.tokens += held_;
  window_.clear();
  held_ = 0;
}

void packer::finish() {
  if (!window_.empty()) pack();
}

}  // namespace rankc::tool
