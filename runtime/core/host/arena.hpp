// SPDX-License-Identifier: Apache-2.0
// The memory of one rank: exactly the plan's number of bytes, zeroed. A guard after the end detects writes
// past it.
#pragma once
#include <rankc/runtime/program.hpp>

#include <cstddef>
#include <memory>
#include <memory_resource>

namespace rankc::runtime::host {

class arena {
 public:
  /// Allocates the arena from `memory`.
  /// Errors: failure (70) if the allocation fails.
  arena(std::size_t bytes, std::pmr::memory_resource* memory);

  std::byte* data() const { return bytes_.get(); }
  std::size_t size() const { return size_; }

  /// True if the guard is unchanged.
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

/// Fills a table of rotary angles in the program's element type.
void fill_rope(std::byte* arena, const runtime::rope_table&, const runtime::chunks&, runtime::dtype);

}  // namespace rankc::runtime::host
