// SPDX-License-Identifier: Apache-2.0
// Writes token files, masks and files of labels for tests.
#pragma once
#include "scratch.hpp"
#include <token_mask_format.hpp>

#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace rankc::runtime {

template <class T>
std::string bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

/// Writes an llm.c file.
inline std::string llm_c(const scratch& files, const std::string& name,
                         const std::vector<std::uint16_t>& tokens) {
  std::string bytes(1024, '\0');
  for (const auto& [at, value] :
       {std::pair{0, 20240520}, std::pair{4, 1}, std::pair{8, static_cast<int>(tokens.size())}})
    std::memcpy(bytes.data() + at, &value, 4);
  for (const std::uint16_t token : tokens) bytes += bytes_of(token);
  return files.write(name, bytes);
}

/// Writes an llm.c file with tokens first, first + 1, ..., so each token tells its position.
inline std::string counting(const scratch& files, const std::string& name, int first, int count) {
  std::vector<std::uint16_t> tokens(static_cast<std::size_t>(count));
  std::iota(tokens.begin(), tokens.end(), static_cast<std::uint16_t>(first));
  return llm_c(files, name, tokens);
}

inline std::string header_of(std::uint64_t tokens, std::uint32_t packed = 0) {
  return bytes_of(token_mask_header{token_mask_magic, token_mask_version, packed, tokens});
}

/// A mask that ignores the tokens whose number satisfies `is_ignored`.
template <class Ignored>
std::string mask(std::uint64_t tokens, const Ignored& is_ignored, std::uint32_t packed = 0) {
  std::string bytes = header_of(tokens, packed);
  for (std::uint64_t i = 0; i < tokens; ++i) bytes += is_ignored(i) ? label_is_ignored : label_counts;
  return bytes;
}

/// Writes files of Megatron with sequences of these tokens, and returns their prefix. `borders` are the
/// numbers of the sequences that begin documents, followed by the number of sequences; empty: each sequence
/// is a document.
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
