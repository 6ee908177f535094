// SPDX-License-Identifier: Apache-2.0
// The secret of a job, as RANKC_SECRET specifies it.
#include <rankc/launch/environment.hpp>

#include <rankc/runtime/failure.hpp>
#include <rankc/runtime/input_file.hpp>

#include <algorithm>
#include <cctype>

namespace rankc::runtime {
namespace {

constexpr std::size_t digits = 32, fewest_bytes = 16, most_bytes = 4096;

/// The content of a file without blanks and newlines at its end.
std::string content_of(input_file& in) {
  std::string all = in.contents();
  all.erase(std::find_if(all.rbegin(), all.rend(), [](unsigned char c) { return c > ' '; }).base(),
            all.end());
  return all;
}

[[noreturn]] void fail_by_size(std::size_t bytes) {
  throw failure(2, "RC5366: the file of RANKC_SECRET has {} bytes; it must have {} to {}", bytes,
                fewest_bytes, most_bytes);
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
  input_file file(text);
  if (file.size() > most_bytes) fail_by_size(file.size());
  const std::string content = content_of(file);
  if (!file.problem().empty())
    throw failure(2,
                  "RC5365: RANKC_SECRET has {} characters, which are neither {} hexadecimal digits nor the "
                  "name of a file that can be read ({})",
                  text.size(), digits, text.empty() ? "it is empty" : file.problem());
  if (content.size() < fewest_bytes) fail_by_size(content.size());
  return content;
}

}  // namespace rankc::runtime
