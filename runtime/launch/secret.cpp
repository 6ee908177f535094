// SPDX-License-Identifier: Apache-2.0
// The secret of a job, as RANKC_SECRET specifies it.
#include <rankc/launch/environment.hpp>

#include <rankc/runtime/failure.hpp>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>

namespace rankc::runtime {
namespace {

constexpr std::size_t digits = 32, fewest_bytes = 16, most_bytes = 4096;

/// The content without the blanks and newlines at its end; nothing where the file cannot be read.
std::optional<std::string> content_of(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return std::nullopt;
  std::string all(most_bytes + 1, '\0');
  in.read(all.data(), static_cast<std::streamsize>(all.size()));
  if (in.bad()) return std::nullopt;
  all.resize(static_cast<std::size_t>(in.gcount()));
  all.erase(std::find_if(all.rbegin(), all.rend(), [](unsigned char c) { return c > ' '; }).base(),
            all.end());
  return all;
}

}  // namespace

std::string read_secret(const environment& get) {
  const char* value = get("RANKC_SECRET");
  if (value == nullptr) return "";
  std::string text = value;
  const auto is_hexadecimal = [](unsigned char c) { return std::isxdigit(c) != 0; };
  if (text.size() == digits && std::all_of(text.begin(), text.end(), is_hexadecimal)) {
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text;
  }
  errno = 0;
  const auto content = text.empty() ? std::nullopt : content_of(text);
  if (!content)
    throw failure(2,
                  "RC5365: RANKC_SECRET has {} characters, which are neither {} hexadecimal digits nor the "
                  "name of a file that can be read ({})",
                  text.size(), digits, errno != 0 ? std::strerror(errno) : "it is empty");
  if (content->size() < fewest_bytes || content->size() > most_bytes)
    throw failure(2, "RC5366: the file of RANKC_SECRET has {} bytes; it must have {} to {}", content->size(),
                  fewest_bytes, most_bytes);
  return *content;
}

}  // namespace rankc::runtime
