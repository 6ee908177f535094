// SPDX-License-Identifier: Apache-2.0
#include "document_borders.hpp"

#include <rankc/runtime/named_inputs.hpp>

#include <algorithm>

namespace rankc::runtime {

document_borders::document_borders(const description& about) : end_(about.end_of_document) {
  if (end_ >= 0 && reads_tokens(about)) begins_.resize(static_cast<std::size_t>(about.seq) + 1);
}

std::uint8_t* document_borders::of_next_sample() {
  std::ranges::fill(begins_, std::uint8_t{0});
  return begins_.empty() ? nullptr : begins_.data();
}

void document_borders::write_starts(const std::int32_t* tokens, std::int32_t* starts) {
  std::int32_t start = 0;
  for (std::size_t i = 0; i + 1 < begins_.size(); ++i) {
    if (tokens[i] == end_) begins_[i + 1] = 1;
    if (begins_[i] != 0) start = static_cast<std::int32_t>(i);
    starts[i] = start;
  }
}

void document_borders::ignore_across(std::int32_t* targets, std::int32_t label) const {
  for (std::size_t i = 0; i + 1 < begins_.size(); ++i)
    if (begins_[i + 1] != 0) targets[i] = label;
}

}  // namespace rankc::runtime
