// SPDX-License-Identifier: Apache-2.0
#include <rankc/runtime/tools/token_file.hpp>

#include "refusal.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

namespace rankc::runtime {
namespace {

namespace fs = std::filesystem;
static_assert(std::endian::native == std::endian::little, "token files are little endian");

constexpr std::int32_t bin_magic = 20240520;
constexpr std::size_t bin_header = 256 * sizeof(std::int32_t);

std::string read_bytes(const fs::path& file) {
  std::error_code error;
  const auto size = fs::file_size(file, error);
  if (error) throw refusal(1, "{}: cannot be read: {}", file.string(), error.message());
  std::ifstream in(file, std::ios::binary);
  std::string bytes(size, '\0');
  if (!in || (size > 0 && !in.read(bytes.data(), static_cast<std::streamsize>(size))))
    throw refusal(1, "{}: cannot be read: {}", file.string(), std::strerror(errno));
  return bytes;
}

bool is_skipped_folder(const fs::path& folder) {
  const std::string name = folder.filename().string();
  return name.starts_with('.') || name.starts_with("build");
}

std::vector<fs::path> files_below(const fs::path& root) {
  std::vector<fs::path> found;
  std::error_code error;
  auto entry = fs::recursive_directory_iterator(root, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (entry->is_symlink()) continue;
    if (entry->is_directory() && is_skipped_folder(entry->path())) entry.disable_recursion_pending();
    if (entry->is_regular_file()) found.push_back(entry->path());
  }
  if (error) throw refusal(1, "{}: cannot be read: {}", root.string(), error.message());
  std::sort(found.begin(), found.end(),
            [](const fs::path& a, const fs::path& b) { return a.generic_string() < b.generic_string(); });
  return found;
}

void append_bytes(std::string_view bytes, std::vector<std::uint16_t>& tokens) {
  tokens.reserve(tokens.size() + bytes.size());
  for (const char c : bytes) tokens.push_back(static_cast<unsigned char>(c));
}

token_file read_text(const fs::path& path) {
  token_file result{.tokens = {}, .files = 0, .text = true};
  const bool folder = fs::is_directory(path);
  for (const fs::path& file : folder ? files_below(path) : std::vector{path}) {
    const std::string bytes = read_bytes(file);
    if (folder && bytes.find('\0') != std::string::npos) continue;
    append_bytes(bytes, result.tokens);
    ++result.files;
  }
  return result;
}

token_file read_bin(const fs::path& path, int vocab) {
  const std::string name = path.string(), bytes = read_bytes(path);
  if (bytes.size() < bin_header)
    throw refusal(1, "{}: holds {} bytes, fewer than the {} of llm.c's header (256 int32)", name,
                  bytes.size(), bin_header);
  std::array<std::int32_t, 3> header;
  std::memcpy(header.data(), bytes.data(), sizeof header);
  const auto [magic, version, count] = header;
  if (magic != bin_magic)
    throw refusal(1, "{}: starts with {}, but llm.c's files of uint16 tokens start with {}", name, magic,
                  bin_magic);
  if (version != 1) throw refusal(1, "{}: is of version {}, but only version 1 is read", name, version);
  const std::size_t held = bytes.size() - bin_header;
  if (count < 0 || held != 2 * static_cast<std::size_t>(count))
    throw refusal(
        1, "{}: its header counts {} tokens of 2 bytes, but {} bytes follow it; the file is {}", name, count,
        held, count >= 0 && held > 2 * static_cast<std::size_t>(count) ? "longer than it says" : "truncated");
  token_file result;
  result.tokens.resize(static_cast<std::size_t>(count));
  if (held > 0) std::memcpy(result.tokens.data(), bytes.data() + bin_header, held);
  const auto wrong =
      std::find_if(result.tokens.begin(), result.tokens.end(), [&](int token) { return token >= vocab; });
  if (wrong != result.tokens.end())
    throw refusal(1, "{}: token {} at position {} is outside this plan's vocabulary; tokens are 0 to {}",
                  name, *wrong, wrong - result.tokens.begin(), vocab - 1);
  return result;
}

}  // namespace

token_file read_tokens(const fs::path& path, int vocab) {
  if (path.extension() == ".bin" && !fs::is_directory(path)) return read_bin(path, vocab);
  if (vocab < 256)
    throw refusal(1,
                  "{}: bytes are tokens 0 to 255, but this plan's vocabulary has {}; use a plan with vocab "
                  ">= 256, a .bin file, arith:SEED or rand:SEED",
                  path.string(), vocab);
  return read_text(path);
}

double unigram_entropy(const std::vector<std::uint16_t>& tokens) {
  std::vector<std::size_t> counts(65536);
  for (const std::uint16_t token : tokens) ++counts[token];
  double entropy = 0;
  for (const std::size_t count : counts) {
    if (count == 0) continue;
    const double p = static_cast<double>(count) / static_cast<double>(tokens.size());
    entropy -= p * std::log(p);
  }
  return entropy;
}

}  // namespace rankc::runtime
