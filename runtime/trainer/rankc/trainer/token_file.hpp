// SPDX-License-Identifier: Apache-2.0
// Tokens from disk: text read as bytes, and the token files of llm.c and Megatron. Files are mapped, so that
// of large ones only what is trained on is read.
#pragma once
#include <rankc/trainer/mapped_file.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace rankc::runtime {

/// How a token lies in a file: little endian, each beside the next.
enum class token_type : std::uint8_t { u8, i8, i16, i32, i64, u16, u32 };

/// Tokens that lie one after the other in a file: all that it has, or one sequence of it.
struct token_piece {
  std::uint32_t file;
  token_type type;
  std::size_t byte;     // in the file
  std::uint64_t first;  // of all tokens, that with which it begins
  std::uint64_t count;
};

/// The files that a path stands for: itself, those of a pattern, or all in a folder.
std::vector<std::filesystem::path> files_of_data(const std::filesystem::path&);

class token_stream {
 public:
  /// Open a path: a text file, whose bytes are its tokens; a .bin file of llm.c, or of Megatron where a .idx
  /// lies beside it; a pattern with * or ? of these; or a folder of them. A folder with token files is these
  /// alone, in the order of their sorted paths; else its text files, without files that hold a NUL byte,
  /// folders whose names begin with a dot or with "build", and links. Files of less than 256 MiB are checked
  /// whole.
  /// Errors: failure (1) for what cannot be read, is truncated, or holds a token that is not below `vocab`.
  /// Source: llm.c: 256 int32 (magic 20240520 version 1 and uint16, or 20240801 version 7 and uint32; token
  /// count), then the
  ///         tokens; Megatron-Core's IndexedDataset.
  token_stream(const std::filesystem::path&, int vocab);

  std::uint64_t size() const { return size_; }
  bool is_text() const { return text_; }             // tokens are bytes
  bool has_sequences() const { return sequences_; }  // of Megatron: each piece is one
  const std::vector<token_piece>& pieces() const { return pieces_; }
  std::size_t files() const { return files_.size(); }
  /// Binary files of a folder of text, which are not read, and files beside token files that are none.
  const std::vector<std::string>& skipped() const { return skipped_; }

  /// Copy tokens [first, first + count), which lie within size().
  /// Errors: failure (1) for a token that is not below the vocabulary, by file, position and number.
  void copy(std::uint64_t first, std::uint64_t count, std::int32_t* to) const;

  /// The same within a piece.
  void copy(const token_piece&, std::uint64_t first, std::uint64_t count, std::int32_t* to) const;

 private:
  void add_file(const std::filesystem::path&);
  void add_text(mapped_file);
  void add_llm_c(mapped_file);
  void add_megatron(mapped_file, const std::filesystem::path& index);
  void add_piece(token_type, std::size_t byte, std::uint64_t count);
  void add_folder(const std::vector<std::filesystem::path>& files);
  std::uint64_t first_of_file(std::uint32_t file) const;
  void check() const;

  int vocab_;
  std::uint64_t size_ = 0;
  bool text_ = false, sequences_ = false;
  std::vector<mapped_file> files_;
  std::vector<token_piece> pieces_;
  std::vector<std::string> skipped_;
};

/// Entropy of the distribution of the bytes of a text, of its first 256 MiB: the loss of a model that knows
/// frequencies and no context.
/// Units: nats per byte.
double byte_entropy(const token_stream&);

}  // namespace rankc::runtime
