// SPDX-License-Identifier: Apache-2.0
// The memory of one rank: exactly as many bytes as the plan says, zeroed, and behind them a guard that shows
// whether anything was written past the end.
#pragma once
#include <rankc/runtime/program.hpp>

#include <cstddef>
#include <memory>
#include <memory_resource>

namespace rankc::runtime::host {

class arena {
 public:
  /// From `memory`. Errors: failure (70) where it gives none.
  arena(std::size_t bytes, std::pmr::memory_resource* memory);

  std::byte* data() const { return bytes_.get(); }
  std::size_t size() const { return size_; }

  /// Whether the bytes after the arena are as they were.
  bool intact() const;

 private:
  struct release {
    std::pmr::memory_resource* memory;
    std::size_t bytes;
    void operator()(std::byte* p) const;
  };
  std::size_t size_;
  std::unique_ptr<std::byte[], release> bytes_;
};

/// Fill a table of rotary angles in the program's element type.
void fill_rope(std::byte* arena, const runtime::rope_table&, const runtime::chunks&, runtime::dtype);

}  // namespace rankc::runtime::host
