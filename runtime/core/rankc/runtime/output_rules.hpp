// SPDX-License-Identifier: Apache-2.0
// The files that a command does not overwrite: its own inputs, and files of other commands. Commands check
// this before they read or compute anything.
#pragma once
#include <rankc/runtime/output_file.hpp>

#include <fstream>
#include <functional>

namespace rankc::runtime {

/// A file that a command line names, and the words that name it: "--data a.txt".
struct named_file {
  std::string words;
  std::filesystem::path file;
};

/// True if two paths are the same file, links followed.
inline bool is_same_file(const std::filesystem::path& a, const std::filesystem::path& b) {
  std::error_code error;
  if (std::filesystem::equivalent(a, b, error)) return true;
  const std::filesystem::path one =
      std::filesystem::weakly_canonical(std::filesystem::absolute(a, error), error);
  return !one.empty() && one == std::filesystem::weakly_canonical(std::filesystem::absolute(b, error), error);
}

/// Refuses an output that is also one of the other files.
/// Errors: failure (2).
inline void refuse_same_file(const named_file& out, const std::vector<named_file>& others) {
  if (is_stream(out.file)) return;
  for (const named_file& other : others)
    if (is_same_file(out.file, other.file))
      throw failure(2, "RC5020: {} is also the file of {}; give each its own file", out.words, other.words);
}

/// The first bytes of a regular file; empty without such a file.
inline std::string beginning_of(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return "";
  std::string text(1024, '\0');
  std::ifstream in(file, std::ios::binary);
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

/// Refuses to overwrite a file of another kind. `kind` is the name of the right kind, with its article.
/// `is_kind` recognises its first bytes.
/// Errors: failure (2) if the existing file is of another kind.
inline void refuse_other_kind(const named_file& out, const std::string& kind,
                              const std::function<bool(std::string_view)>& is_kind) {
  if (is_stream(out.file)) return;
  const std::string there = beginning_of(out.file);
  if (there.empty() || is_kind(there)) return;
  throw failure(2,
                "RC5021: {} exists and is not {}, so it is not overwritten: give another name, or remove it",
                out.words, kind);
}

}  // namespace rankc::runtime
