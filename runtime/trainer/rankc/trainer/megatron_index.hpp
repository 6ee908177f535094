// SPDX-License-Identifier: Apache-2.0
// The .idx file next to a .bin file of Megatron. It holds the tokens' type and the start of each sequence.
#pragma once
#include <rankc/trainer/token_file.hpp>

#include <cstdint>
#include <filesystem>
#include <vector>

namespace rankc::runtime {

/// Units: `lengths` in tokens, `pointers` in bytes of the .bin file; document d is the sequences
/// [documents[d], documents[d + 1]).
struct megatron_index {
  token_type type;
  std::vector<std::int32_t> lengths;
  std::vector<std::int64_t> pointers, documents;
};

/// Reads an index and checks that it is complete, that documents are in the order of their sequences, and
/// that every sequence lies within a .bin file of `bytes`.
/// Errors: failure (1) that names the file and the fault.
/// Source: Megatron-Core's IndexedDataset: "MMIDIDX\0\0", u64 version 1, u8 type, u64 sequences, u64
/// documents + 1, i32 lengths, i64 pointers, i64 document indices; multimodal files append an i8 for each
/// sequence.
megatron_index read_megatron_index(const std::filesystem::path&, std::size_t bytes);

}  // namespace rankc::runtime
