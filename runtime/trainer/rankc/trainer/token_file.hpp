// SPDX-License-Identifier: Apache-2.0
// Tokens from disk: text read as bytes, and the token files of llm.c and Megatron. Files are mapped, so of
// large files only the tokens that are trained on are read from disk.
#pragma once
#include <rankc/trainer/mapped_file.hpp>
#include <rankc/trainer/token_mask.hpp>
#include <rankc/trainer/token_weights.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace rankc::runtime {

/// The type of a token in a file. Tokens are little endian and contiguous.
enum class token_type : std::uint8_t { u8, i8, i16, i32, i64, u16, u32 };

/// The tokens that a file may contain: those below `vocab`. A file of labels may also contain `ignored`.
struct legal_tokens {
  int vocab;
  std::optional<std::int32_t> ignored{};
  bool are_labels = false;

  bool has(std::int64_t token) const {
    return (token >= 0 && token < vocab) || (ignored && token == *ignored);
  }
};

/// Contiguous tokens of a file: all of its tokens, or one sequence.
struct token_piece {
  std::uint32_t file;
  token_type type;
  bool begins_document;  // according to a .idx file
  std::size_t byte;      // offset in the file
  std::uint64_t first;   // number of the stream's tokens before it
  std::uint64_t count;
};

/// A file whose examples are packed into sequences.
struct packed_file {
  std::string name;
  std::uint64_t length;  // tokens of a sequence
  std::uint64_t first;   // number of the stream's tokens before the file
};

class token_stream {
 public:
  /// Opens the files of a path (data_files.hpp): text files, whose bytes are tokens, or .bin files of llm.c,
  /// or of Megatron if a .idx file is next to them. In a folder with token files, only these are read. In any
  /// other folder, the text files are read, except files with a NUL byte. Files of less than 256 MiB are
  /// checked completely. `rankc tokens --pack` ends a file with one more token, the target of the last token
  /// of the last sequence. If another file follows, that token is left out, so the sequences of the next file
  /// begin at a multiple of their length.
  /// Errors: failure (1) for a file that cannot be read, is truncated, or holds a token that is not below
  /// `vocab`.
  /// Source: llm.c: 256 int32 (magic 20240520, version 1 and uint16 tokens, or magic 20240801, version 7 and
  /// uint32 tokens; then the count of tokens), then the tokens; Megatron-Core's IndexedDataset.
  token_stream(const std::filesystem::path&, const legal_tokens&);
  token_stream(const std::filesystem::path& path, int vocab) : token_stream(path, legal_tokens{vocab}) {}

  std::uint64_t size() const { return size_; }
  bool is_text() const { return text_; }             // tokens are bytes
  bool has_sequences() const { return sequences_; }  // files of Megatron; each piece is a sequence
  const std::vector<token_piece>& pieces() const { return pieces_; }
  std::size_t files() const { return files_.size(); }
  /// All files that are read: files() token files, then indexes, masks and weights.
  std::vector<std::filesystem::path> paths() const;
  /// The files and folders below a folder that are not read, each as "NAME (reason)".
  const std::vector<std::string>& skipped() const { return skipped_; }

  /// The number of documents that begin according to .idx files.
  std::uint64_t documents() const;

  /// Copies tokens [first, first + count), which must lie within size().
  /// Errors: failure (1) for a token that is not legal, with its file, position and value.
  void copy(std::uint64_t first, std::uint64_t count, std::int32_t* to) const;

  /// The same for tokens of one piece.
  void copy(const token_piece&, std::uint64_t first, std::uint64_t count, std::int32_t* to) const;

  /// Sets `begins` to 1 for each of tokens [first, first + count) that begins a document of a .idx file.
  /// Shapes: begins (count).
  void mark_documents(std::uint64_t first, std::uint64_t count, std::uint8_t* begins) const;

  /// Replaces masked labels by `ignored`. `labels` are tokens [first, first + count).
  void mask(std::uint64_t first, std::uint64_t count, std::int32_t ignored, std::int32_t* labels) const;
  /// The first mask that ignores a token; null if no mask does.
  const token_mask* first_mask() const;
  /// The number of tokens that are labels: all if no file has a mask.
  std::uint64_t labels() const;
  /// The weights of the first file that has weights; null if no file has.
  const token_weights* first_weights() const;
  /// The first token file without weights; empty if each has weights.
  std::string file_without_weights() const;
  /// Copies the weights of tokens [first, first + count). Each token file has weights.
  void copy_weights(std::uint64_t first, std::uint64_t count, double* to) const;
  /// The files whose examples are packed into sequences.
  std::vector<packed_file> packed() const;

 private:
  void add_file(const std::filesystem::path&);
  void add_text(mapped_file);
  void add_llm_c(mapped_file);
  void add_megatron(mapped_file, const std::filesystem::path& index);
  void add_piece(token_type, std::size_t byte, std::uint64_t count);
  void add_companions(std::uint64_t tokens);
  void remove_last_target();
  void add_folder(std::vector<std::filesystem::path> files);
  std::uint64_t first_of_file(std::uint32_t file) const;
  void check() const;
  const token_mask* mask_of(const token_piece&) const;        // null: its file has no mask
  const token_weights* weights_of(const token_piece&) const;  // null: its file has no weights
  [[noreturn]] void refuse(const token_piece&, std::uint64_t place) const;
  template <class Visit>
  void for_each_part(std::uint64_t first, std::uint64_t count, const Visit& visit) const;

  legal_tokens legal_;
  std::uint64_t size_ = 0;
  bool text_ = false, sequences_ = false;
  bool at_border_ = false;  // the next token begins a document
  std::vector<mapped_file> files_;
  std::vector<std::optional<token_mask>> masks_;       // by file; later files lack a mask
  std::vector<std::optional<token_weights>> weights_;  // by file; later files lack weights
  std::vector<std::filesystem::path> indexes_;         // .idx files
  std::vector<token_piece> pieces_;
  std::vector<std::string> skipped_;
};

/// The entropy of the byte frequencies in the first 256 MiB of a text: the loss of a model that knows
/// frequencies and no context.
/// Units: nats per byte.
double byte_entropy(const token_stream&);

}  // namespace rankc::runtime
