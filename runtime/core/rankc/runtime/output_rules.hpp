// SPDX-License-Identifier: Apache-2.0
// What a command does not write over: its own inputs, and files that no such command has written. Commands
// ask before they read or compute anything.
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

/// Whether two paths stand for one file, links followed.
inline bool is_same_file(const std::filesystem::path& a, const std::filesystem::path& b) {
  std::error_code error;
  if (std::filesystem::equivalent(a, b, error)) return true;
  const std::filesystem::path one = std::filesystem::weakly_canonical(std::filesystem::absolute(a), error);
  return !one.empty() && one == std::filesystem::weakly_canonical(std::filesystem::absolute(b), error);
}

/// Errors: failure (2) where an output is one of the other files.
inline void refuse_same_file(const named_file& out, const std::vector<named_file>& others) {
  if (is_stream(out.file)) return;
  for (const named_file& other : others)
    if (is_same_file(out.file, other.file))
      throw failure::reported(
          2, out.words + ": is the file of " + other.words + ", too; give it a name of its own");
}

/// The first bytes of a regular file; empty where there is none.
inline std::string beginning_of(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return "";
  std::string text(1024, '\0');
  std::ifstream in(file, std::ios::binary);
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

/// `kind`: with its article. `is_kind`: whether a file that begins so is one.
/// Errors: failure (2) where something else has the name.
inline void refuse_other_kind(const named_file& out, const std::string& kind,
                              const std::function<bool(std::string_view)>& is_kind) {
  if (is_stream(out.file)) return;
  const std::string there = beginning_of(out.file);
  if (there.empty() || is_kind(there)) return;
  throw failure::reported(2, out.words + ": there is a file that is not " + kind +
                                 "; it stays as it is, give another name or remove it");
}

}  // namespace rankc::runtime
