// SPDX-License-Identifier: Apache-2.0
// Event files for TensorBoard: one curve per name.
#pragma once
#include <rankc/runtime/durable.hpp>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace rankc::runtime {

/// The checksum of a record.
/// Source: CRC-32C (Castagnoli 1993), masked as in TFRecord.
std::uint32_t masked_crc32c(std::string_view bytes);

class tensorboard_file {
 public:
  /// Begins a file in a folder, and creates the folder if needed. TensorBoard drops `first_step` and later
  /// steps of the folder's older files.
  /// Errors: failure (1) if it cannot be opened.
  tensorboard_file(const std::filesystem::path& folder, std::int64_t first_step);

  /// True if the folder had TensorBoard files before.
  bool had_curves() const { return had_curves_; }

  /// Adds a point to some curves. If that fails, e.g. on a full disk, training continues without curves, and
  /// a line on stderr reports it.
  void write(std::int64_t step, std::span<const std::pair<std::string_view, double>> values);

 private:
  void write_record(const std::string& bytes);

  bool had_curves_;
  durable_file out_;
  bool failed_ = false;
};

}  // namespace rankc::runtime
