// SPDX-License-Identifier: Apache-2.0
#include "verify_json.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

namespace rankc::codegen::verifying {

std::string found(const json& j) {
  constexpr std::size_t most = 80;  // characters
  if (j.is_structured()) return j.is_array() ? "a list" : "an object";
  const std::string text = j.dump();
  return text.size() > most ? "a string of " + std::to_string(text.size() - 2) + " characters" : text;
}

void expect_fields(const json& j, const std::vector<const char*>& names, const std::string& where) {
  if (!j.is_object()) refuse("RC7100: certificate: {} must be an object, found {}", where, found(j));
  for (const char* name : names)
    if (!j.contains(name)) refuse("RC7101: certificate: {} has no field \"{}\"", where, name);
  for (const auto& [key, unused] : j.items())
    if (std::find(names.begin(), names.end(), key) == names.end())
      refuse("RC7102: certificate: {} has a field \"{}\" that does not belong there", where, key);
}

std::uint64_t to_size(const json& j, const std::string& where) {
  if (!j.is_number_unsigned())
    refuse("RC7103: certificate: {} must be a whole number of 0 or more, found {}", where, found(j));
  return j.get<std::uint64_t>();
}

int to_int(const json& j, const std::string& where) {
  if (!j.is_number_integer())
    refuse("RC7104: certificate: {} must be a whole number, found {}", where, found(j));
  constexpr auto least = std::numeric_limits<int>::min(), most = std::numeric_limits<int>::max();
  const bool fits = j.is_number_unsigned() ? j.get<std::uint64_t>() <= static_cast<std::uint64_t>(most)
                                           : j.get<std::int64_t>() >= least;
  if (!fits) refuse("RC7105: certificate: {} must be a whole number of 32 bits, found {}", where, found(j));
  return j.get<int>();
}

bool to_flag(const json& j, const std::string& where) {
  if (!j.is_boolean()) refuse("RC7106: certificate: {} must be true or false, found {}", where, found(j));
  return j.get<bool>();
}

std::string to_text(const json& j, const std::string& where) {
  if (!j.is_string()) refuse("RC7107: certificate: {} must be a string, found {}", where, found(j));
  return j.get<std::string>();
}

std::vector<int> to_ints(const json& j, const std::string& where) {
  return to_list(j, where, [&](const json& item) { return to_int(item, where); });
}

std::string to_word(const json& j, std::initializer_list<const char*> words, const std::string& where) {
  auto word = to_text(j, where);
  if (std::find(words.begin(), words.end(), word) == words.end())
    refuse("RC7108: certificate: {} must be one of {}, found {}", where,
           fmt::format("\"{}\"", fmt::join(words, "\", \"")), found(j));
  return word;
}

std::int64_t to_count(const json& j, const std::string& where) {
  const std::uint64_t n = to_size(j, where);
  if (n > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    refuse("RC7109: certificate: {} must be less than 2^63, found {}", where, n);
  return static_cast<std::int64_t>(n);
}
std::vector<std::int64_t> to_counts(const json& j, const std::string& where) {
  return to_list(j, where, [&](const json& item) { return to_count(item, where); });
}

rope_scaling to_scaling(const json& j, const std::string& where) {
  if (!j.is_array() || j.size() != 5)
    refuse(
        "RC7110: certificate: {} must scale rotary positions by [rule, factor, low_freq_factor, "
        "high_freq_factor, original_positions]",
        where);
  const std::string rule = to_word(j[0], {"linear", "llama3"}, where);
  return {rule == "linear" ? rope_scaling::linear : rope_scaling::llama3, to_number(j[1], where),
          to_number(j[2], where), to_number(j[3], where), to_int(j[4], where)};
}
load_balance to_balance(const json& rate, const json& mean, const std::string& where) {
  const load_balance by{to_number(rate, where), to_number(mean, where)};
  if (!(by.rate > 0) || !(by.mean > 0))
    refuse(
        "RC7111: certificate: {} must balance a router's bias with a rate and a mean above 0, found {} and "
        "{}",
        where, by.rate, by.mean);
  return by;
}
double to_number(const json& j, const std::string& where) {
  if (!j.is_number()) refuse("RC7112: certificate: {} must be a number, found {}", where, found(j));
  return j.get<double>();
}

}  // namespace rankc::codegen::verifying
