// SPDX-License-Identifier: Apache-2.0
// Token files in which each token tells its position.
#pragma once
#include "scratch.hpp"

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

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

}  // namespace rankc::runtime
