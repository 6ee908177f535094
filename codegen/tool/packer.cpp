// SPDX-License-Identifier: Apache-2.0
#include "packer.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace rankc::tool {

namespace {

constexpr std::size_t most_held = 1 << 24;  // tokens of a window

void append(example& to, const example& one) {
  to.ids.insert(to.ids.end(), one.ids.begin(), one.ids.end());
  to.labels.insert(to.labels.end(), one.labels.begin(), one.labels.end());
  to.weights.insert(to.weights.end(), one.weights.begin(), one.weights.end());
}

/// Drops the tokens from `length` on, or adds fillers, which are no labels and have the weight 0.
void resize(example& to, std::size_t length, int filler) {
  to.ids.resize(length, filler);
  to.labels.resize(length, runtime::label_is_ignored);
  if (!to.weights.empty()) to.weights.resize(length, 0);
}

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
    resize(one, length_, filler_);
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
    for (const std::size_t i : members) append(sequence, window_[i]);
    resize(sequence, length_, filler_);
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
