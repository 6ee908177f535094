// SPDX-License-Identifier: Apache-2.0
// Tables that several pipeline coordinates share are printed once.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

namespace rankc::codegen {

/// The index of a text in a list. A text that the list lacks is added.
inline std::size_t index_in(std::vector<std::string>& list, const std::string& text) {
  const auto at = static_cast<std::size_t>(std::ranges::find(list, text) - list.begin());
  if (at == list.size()) list.push_back(text);
  return at;
}

}  // namespace rankc::codegen
