// SPDX-License-Identifier: Apache-2.0
// Event files that TensorBoard opens: a curve for each name.
#pragma once
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace rankc::runtime {

/// The checksum of a record. Source: CRC-32C (Castagnoli 1993), masked as TFRecord has it.
std::uint32_t masked_crc32c(std::string_view bytes);

class tensorboard_file {
 public:
  /// Begin a file of its own in a folder, which is made where it is not there.
  /// Errors: failure (1) when it cannot be opened.
  explicit tensorboard_file(const std::filesystem::path& folder);

  /// Add a point to some curves. When that fails, as on a full disk, training goes on: the first time says so
  /// on stderr.
  void write(std::int64_t step, std::span<const std::pair<std::string_view, double>> values);

 private:
  void write_record(const std::string& bytes);

  std::string name_;
  std::ofstream out_;
  bool failed_ = false;
};

}  // namespace rankc::runtime
