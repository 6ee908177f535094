// SPDX-License-Identifier: Apache-2.0
// The memory of one rank: exactly as many bytes as the plan says, zeroed, and behind them a guard that shows
// whether anything was written past the end.
#pragma once
#include <rankc/runtime/program.hpp>

#include <cstddef>
#include <memory>
#include <new>

namespace rankc::host {

class arena {
 public:
  explicit arena(std::size_t bytes);

  std::byte* data() const { return bytes_.get(); }
  std::size_t size() const { return size_; }

  /// Whether the bytes after the arena are as they were.
  bool intact() const;

 private:
  static constexpr std::align_val_t alignment{64};
  struct release {
    void operator()(std::byte* p) const { ::operator delete[](p, alignment); }
  };
  std::size_t size_;
  std::unique_ptr<std::byte[], release> bytes_;
};

/// Fill a table of rotary angles: angle = position theta^(-2 j / dim), computed in f64.
/// Shapes: (positions, dim / 2) cosines, then as many sines, of the program's element type.
void fill_rope(std::byte* arena, const runtime::rope_table&, const runtime::chunks&, runtime::dtype);

}  // namespace rankc::host
