// SPDX-License-Identifier: Apache-2.0
// Arrays in NumPy's .npy files.
#pragma once
#include <rankc/trainer/mapped_file.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace rankc::runtime {

/// The number types that can be read, little endian.
enum class npy_type : std::uint8_t { f32, f64, u8, i32, i64 };

/// An array in row-major order. The file is mapped.
/// Source: NEP 1, versions 1.0 and 2.0.
class npy_file {
 public:
  /// Errors: failure (1) for a file that cannot be read, is no .npy file or is truncated, for another type,
  /// and for column-major order.
  explicit npy_file(const std::filesystem::path&);

  const std::string& name() const { return file_.name(); }
  const std::vector<std::uint64_t>& shape() const { return shape_; }
  npy_type type() const { return type_; }
  bool is_whole() const { return type_ >= npy_type::u8; }
  /// "(100, 16, 48)"
  std::string shape_text() const;

  /// Copies the numbers [first, first + count).
  void copy(std::uint64_t first, std::uint64_t count, double* to) const;

 private:
  void read_header();

  mapped_file file_;
  std::vector<std::uint64_t> shape_;
  npy_type type_ = npy_type::f32;
  std::size_t begin_ = 0;  // the offset of the numbers
};

}  // namespace rankc::runtime
