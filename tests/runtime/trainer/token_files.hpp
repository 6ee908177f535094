// SPDX-License-Identifier: Apache-2.0
// Token files of llm.c, in which each token tells its position, and of Megatron.
#pragma once
#include "scratch.hpp"

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace rankc::runtime {

/// Write an llm.c file whose tokens are first, first + 1, ...
inline std::string counting(const scratch& files, const std::string& name, int first, int count) {
  std::string bytes(1024 + 2 * static_cast<std::size_t>(count), '\0');
  for (const auto& [at, value] : {std::pair{0, 20240520}, std::pair{4, 1}, std::pair{8, count}})
    std::memcpy(bytes.data() + at, &value, 4);
  for (int i = 0; i < count; ++i) {
    const auto token = static_cast<std::uint16_t>(first + i);
    std::memcpy(bytes.data() + 1024 + 2 * i, &token, 2);
  }
  return files.write(name, bytes);
}

template <class T>
std::string bytes_of(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

/// Write a file of Megatron with sequences of these tokens. `borders` are the numbers of the sequences with
/// which documents begin, and the number of sequences; empty: each sequence is a document.
template <class T>
std::string megatron(const scratch& files, const std::string& name, std::uint8_t code,
                     const std::vector<std::vector<T>>& sequences, std::vector<std::int64_t> borders = {}) {
  std::string tokens, lengths, pointers, documents;
  for (const std::vector<T>& sequence : sequences) {
    pointers += bytes_of(static_cast<std::int64_t>(tokens.size()));
    lengths += bytes_of(static_cast<std::int32_t>(sequence.size()));
    for (const T token : sequence) tokens += bytes_of(token);
  }
  if (borders.empty())
    for (std::size_t d = 0; d <= sequences.size(); ++d) borders.push_back(static_cast<std::int64_t>(d));
  for (const std::int64_t border : borders) documents += bytes_of(border);
  files.write(name + ".idx", std::string("MMIDIDX\0\0", 9) + bytes_of(std::uint64_t{1}) + bytes_of(code) +
                                 bytes_of(std::uint64_t{sequences.size()}) +
                                 bytes_of(std::uint64_t{borders.size()}) + lengths + pointers + documents);
  files.write(name + ".bin", tokens);
  return files.path(name);
}

}  // namespace rankc::runtime
