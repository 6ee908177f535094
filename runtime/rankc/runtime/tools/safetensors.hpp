// SPDX-License-Identifier: Apache-2.0
// Files of named tensors in the safetensors format: u64 length of a JSON header, the header, raw row-major
// little-endian data without holes. The writer adds a checksum to the header's metadata; the reader checks it
// where there is one, so that a damaged checkpoint is refused before anything is loaded from it.
#pragma once
#include <rankc/runtime/program.hpp>
#include <rankc/runtime/tools/checksum.hpp>

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace rankc::runtime {

using text_map = std::map<std::string, std::string>;

class safetensors_reader {
 public:
  enum class element { f32, f64, f16, bf16 };

  /// Units: offset in bytes from the start of the file; count in elements.
  struct tensor {
    element type;
    std::vector<std::size_t> shape;
    std::size_t offset, count;
  };

  /// Open a file and check all of it: sizes, offsets, types, shapes, checksum.
  /// Errors: failure (1) that names the file, and the tensor where one is at fault.
  explicit safetensors_reader(const std::filesystem::path& file);

  const std::map<std::string, tensor>& tensors() const { return tensors_; }
  const text_map& metadata() const { return metadata_; }

  /// Read elements [first, first + count) of a tensor.
  /// Errors: failure (1) for a value that is not finite, or a file that can no longer be read.
  void read(const std::string& name, std::size_t first, std::size_t count, double* to);

 private:
  std::string read_header();
  void read_tensors(const std::string& header);
  void check_checksum(std::string header);
  void read_bytes(std::size_t offset, void* to, std::size_t bytes);

  std::string name_;
  std::ifstream in_;
  std::size_t size_ = 0, data_ = 0;  // bytes of the file; offset of the first tensor
  std::map<std::string, tensor> tensors_;
  text_map metadata_;
  std::vector<unsigned char> buffer_;
};

class safetensors_writer {
 public:
  struct tensor {
    std::string name;
    std::vector<std::size_t> shape;
  };

  /// Create a file for these tensors, whose values `append` then gives in the same order. Values are rounded
  /// to `type`. Errors: failure (65) when the file cannot be written, here and below.
  safetensors_writer(const std::filesystem::path& file, const std::vector<tensor>&, dtype type,
                     text_map metadata);
  void append(const double* values, std::size_t count);

  /// Write the checksum and wait until the file is on disk.
  void close();

 private:
  void write(const void* data, std::size_t bytes);
  [[noreturn]] void fail() const;

  std::string name_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
  dtype type_;
  std::size_t checksum_offset_ = 0, bytes_left_ = 0;
  checksum sum_;
  std::vector<unsigned char> buffer_;
};

/// A shape as text: "[512, 64]".
std::string shape_text(const std::vector<std::size_t>& shape);

}  // namespace rankc::runtime
