// SPDX-License-Identifier: Apache-2.0
// The frame of a fuzz target: a reader accepts a file, or refuses it with a message that has an id. Any other
// exception, and every finding of the sanitizers, ends the target.
#pragma once
#include "../../scratch_folder.hpp"

#include <rankc/runtime/failure.hpp>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>

namespace rankc::fuzz {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Write a file into this process's folder. Returns: its path.
inline std::filesystem::path file_with(std::string_view bytes, const char* name) {
  static const scratch_folder folder;
  const std::filesystem::path path = folder.path / name;
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

/// Run a reader. Errors: any exception except a refusal.
template <class Read>
void accept_or_refuse(const Read& read) {
  try {
    read();
  } catch (const runtime::failure& refused) {
    if (refused.id == 0) throw;
  }
}

}  // namespace rankc::fuzz
