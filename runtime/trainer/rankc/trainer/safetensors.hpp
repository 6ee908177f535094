// SPDX-License-Identifier: Apache-2.0
// Files of named tensors in the safetensors format: the u64 length of a JSON header, the header, and
// row-major little-endian data without holes. The writer stores checksums of the header and of each tensor in
// the header's metadata. If a file has checksums, the reader compares them, and refuses a damaged file before
// it loads any of it.
#pragma once
#include <rankc/runtime/program.hpp>
#include <rankc/runtime/durable.hpp>
#include <rankc/trainer/checksum.hpp>
#include <rankc/runtime/input_file.hpp>

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace rankc::runtime {

using text_map = std::map<std::string, std::string>;

class safetensors_reader {
 public:
  enum class element { f32, f64, f16, bf16, other };  // other: a type of the format that is not read

  /// Units: offset in bytes from the start of the file; count in elements.
  struct tensor {
    element type;
    std::vector<std::size_t> shape;
    std::size_t offset, count, width;  // width: bytes of an element
    std::string checksum;              // empty: the file stores no checksum
  };

  /// Opens a file and checks its header: sizes, offsets, types, shapes, checksum.
  /// Errors: failure (1) that names the file, and the tensor if one is at fault.
  explicit safetensors_reader(const std::filesystem::path& file);

  const std::map<std::string, tensor>& tensors() const { return tensors_; }
  const text_map& metadata() const { return metadata_; }
  /// The checksum of the header, which includes the checksums of all tensors; empty if the file stores none.
  const std::string& checksum_of_header() const { return header_checksum_; }

  /// Checks one tensor or all: the checksum, and that values are finite.
  /// Errors: failure (1) that names the tensor, with the expected and the found value; failure (1) for a
  /// tensor that is not floating point.
  void check(const std::string& name) const;
  void check() const;

  /// Reads elements [first, first + count) of a tensor. Several threads may read at the same time.
  /// Errors: failure (1) for a value that is not finite, or a file that can no longer be read.
  void read(const std::string& name, std::size_t first, std::size_t count, double* to) const;

 private:
  std::string read_header();
  void read_tensors(const std::string& header);
  void read_checksums(std::string header, std::vector<tensor*> in_order);
  void read_bytes(std::size_t offset, void* to, std::size_t bytes) const;

  std::string name_, header_checksum_;
  input_file file_;
  std::size_t size_ = 0, data_ = 0;  // bytes of the file; offset of the first tensor
  std::map<std::string, tensor> tensors_;
  text_map metadata_;
};

class safetensors_writer {
 public:
  struct tensor {
    std::string name;
    std::vector<std::size_t> shape;
    dtype type;
    std::size_t count() const;
  };

  /// Creates a file for these tensors. `append` then supplies their values in the same order.
  /// Errors, here and below: failure (65) if the file cannot be written.
  safetensors_writer(const std::filesystem::path& file, std::vector<tensor>, text_map metadata);

  /// Appends values of one tensor, rounded to its type, or bytes as the file stores them.
  void append(const double* values, std::size_t count);
  void append_stored(const void* data, std::size_t bytes);

  /// Writes the checksums and waits until the file is on disk. Returns: the header's checksum.
  std::string close();

 private:
  std::string header(const std::string& of_header) const;

  std::string name_;
  std::vector<tensor> tensors_;
  text_map metadata_;
  durable_file file_;
  std::size_t next_ = 0, bytes_left_ = 0;  // complete tensors; bytes that the next one lacks
  checksum sum_;                           // includes the next tensor's bytes so far
  std::vector<std::string> checksums_;
  std::vector<unsigned char> buffer_;
};

/// Encodes values as a file stores them.
/// Shapes: `to` has count * size_of(type) bytes.
void encode(const double* values, std::size_t count, dtype type, unsigned char* to);

/// The type's name in a header.
const char* name_of(dtype type);

/// A shape as text: "[512, 64]".
std::string shape_text(const std::vector<std::size_t>& shape);

}  // namespace rankc::runtime
