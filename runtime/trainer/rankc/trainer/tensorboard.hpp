// SPDX-License-Identifier: Apache-2.0
// Event files that TensorBoard opens: a curve for each name.
#pragma once
#include <rankc/runtime/durable.hpp>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace rankc::runtime {

/// The checksum of a record. Source: CRC-32C (Castagnoli 1993), masked as TFRecord has it.
std::uint32_t masked_crc32c(std::string_view bytes);

class tensorboard_file {
 public:
  /// Begin a file in a folder, which is created where it does not exist. TensorBoard drops `first_step` and
  /// later steps of the files that are there.
  /// Errors: failure (1) when it cannot be opened.
  tensorboard_file(const std::filesystem::path& folder, std::int64_t first_step);

  /// Whether the folder had files of TensorBoard before.
  bool had_curves() const { return had_curves_; }

  /// Add a point to some curves. Where that fails, as on a full disk, training goes on without them, and a
  /// line on stderr says so.
  void write(std::int64_t step, std::span<const std::pair<std::string_view, double>> values);

 private:
  void write_record(const std::string& bytes);

  bool had_curves_;
  durable_file out_;
  bool failed_ = false;
};

}  // namespace rankc::runtime
