// SPDX-License-Identifier: Apache-2.0
#include "reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <set>

namespace rankc::codegen::schema {

namespace {

constexpr std::size_t most_bytes = std::size_t{1} << 50, most_size = std::size_t{1} << 36;

}  // namespace

std::string found(const json& j) {
  constexpr std::size_t most = 80;  // characters
  if (j.is_structured()) return j.is_array() ? "a list" : "an object";
  const std::string text = j.dump();
  return text.size() > most ? fmt::format("a string of {} characters", text.size() - 2) : text;
}

void read_value(const json& j, const std::string& where, std::size_t& n) {
  if (!j.is_number_unsigned())
    refuse("RC7103: certificate: {} must be a whole number of 0 or more, found {}", where, found(j));
  n = j.get<std::size_t>();
  if (n > most_bytes) refuse("RC7143: certificate: {} must be at most 2^50, found {}", where, n);
}

void read_value(const json& j, const std::string& where, int& n) {
  if (!j.is_number_integer())
    refuse("RC7104: certificate: {} must be a whole number, found {}", where, found(j));
  constexpr auto least = std::numeric_limits<int>::min(), most = std::numeric_limits<int>::max();
  const bool fits = j.is_number_unsigned() ? j.get<std::uint64_t>() <= static_cast<std::uint64_t>(most)
                                           : j.get<std::int64_t>() >= least;
  if (!fits) refuse("RC7105: certificate: {} must be a whole number of 32 bits, found {}", where, found(j));
  n = j.get<int>();
}

void read_value(const json& j, const std::string& where, std::int64_t& n) {
  std::size_t size = 0;
  read_value(j, where, size);
  if (size > most_size) refuse("RC7109: certificate: {} must be at most 2^36, found {}", where, size);
  n = static_cast<std::int64_t>(size);
}

void read_value(const json& j, const std::string& where, double& x) {
  if (!j.is_number()) refuse("RC7112: certificate: {} must be a number, found {}", where, found(j));
  x = j.get<double>();
}

void read_value(const json& j, const std::string& where, bool& flag) {
  if (!j.is_boolean()) refuse("RC7106: certificate: {} must be true or false, found {}", where, found(j));
  flag = j.get<bool>();
}

static const std::string& text_of(const json& j, const std::string& where) {
  if (!j.is_string()) refuse("RC7107: certificate: {} must be a string, found {}", where, found(j));
  return j.get_ref<const std::string&>();
}

void read_value(const json& j, const std::string& where, std::string& text) { text = text_of(j, where); }

void read_value(const json& j, const std::string& where, std::string_view& text) {
  static std::set<std::string, std::less<>> words;
  const std::string& word = text_of(j, where);
  const auto known = words.find(word);
  text = known != words.end() ? *known : *words.insert(word).first;
}

int read_word(const json& j, const std::string& where, std::span<const char* const> words) {
  const auto at = std::find(words.begin(), words.end(), text_of(j, where));
  if (at == words.end())
    refuse("RC7108: certificate: {} must be one of {}, found {}", where,
           fmt::format("\"{}\"", fmt::join(words, "\", \"")), found(j));
  return static_cast<int>(at - words.begin());
}

const json& expect_list(const json& j, const std::string& where) {
  if (!j.is_array()) refuse("RC7113: certificate: {} must be a list, found {}", where, found(j));
  return j;
}

void read_sizes(const json& j, const std::string& where, std::vector<std::int64_t>& sizes) {
  read_value(j, where, sizes);
}

void read_sizes(const json& j, const std::string& where, tensor_shape& shape) {
  if (const std::size_t dims = expect_list(j, where).size(); dims > 2)
    refuse("RC7120: certificate: {} must have two dims at most, found {}", where, dims);
  shape = {};
  for (const json& size : j) {
    std::int64_t n = 0;
    read_value(size, where, n);
    shape.push_back(n);
  }
}

void read_sizes(const json& j, const std::string& where, std::vector<box_range>& box) {
  box.resize(expect_list(j, where).size());
  for (std::size_t d = 0; d < box.size(); ++d) read_value(j[d], where, box[d].count);
}

reader::reader(const json& j, bool is_line, const std::string& where)
    : j_(j), is_line_(is_line), where_(where) {
  if (!is_line && !j.is_object())
    refuse("RC7100: certificate: {} must be an object, found {}", where_, found(j));
  if (is_line) expect_list(j, where_);
}

std::string reader::within(const char* name) const { return where_ + ": " + name; }

const json& reader::field(const char* name) {
  seen_.push_back(name);
  if (is_line_) {
    if (seen_.size() > j_.size())
      refuse("RC7115: certificate: {} has {} elements and no \"{}\"", where_, j_.size(), name);
    return j_[seen_.size() - 1];
  }
  const auto at = j_.find(name);
  if (at == j_.end()) refuse("RC7101: certificate: {} has no field \"{}\"", where_, name);
  return *at;
}

void reader::expect(bool condition, const char* text) const {
  if (!condition) refuse("RC7110: certificate: {} must have {}", where_, text);
}

void reader::finish() const {
  if (is_line_ && j_.size() > seen_.size())
    refuse("RC7116: certificate: {} has {} elements; expected {}", where_, j_.size(),
           fmt::format("{}", fmt::join(seen_, ", ")));
  if (is_line_ || j_.size() == seen_.size()) return;
  for (const auto& [key, unused] : j_.items())
    if (std::find(seen_.begin(), seen_.end(), key) == seen_.end())
      refuse("RC7102: certificate: {} has a field \"{}\" that does not belong there", where_, key);
}

}  // namespace rankc::codegen::schema
