// SPDX-License-Identifier: Apache-2.0
#include "verify_json.hpp"

#include <algorithm>
#include <limits>

namespace rankc::codegen::verifying {

void refuse(const std::string& where, const std::string& what) {
  throw refusal(fmt::format("not a certificate: {} {}", where, what));
}

void expect_fields(const json& j, const std::vector<const char*>& names, const std::string& where) {
  if (!j.is_object()) refuse(where, "must be an object");
  for (const char* name : names)
    if (!j.contains(name)) refuse(where, fmt::format("has no field \"{}\"", name));
  for (const auto& [key, unused] : j.items())
    if (std::find(names.begin(), names.end(), key) == names.end())
      refuse(where, fmt::format("has a field \"{}\" that means nothing here", key));
}

std::uint64_t to_size(const json& j, const std::string& where) {
  if (!j.is_number_unsigned()) refuse(where, "must be a whole number of 0 or more");
  return j.get<std::uint64_t>();
}

int to_int(const json& j, const std::string& where) {
  if (!j.is_number_integer()) refuse(where, "must be a whole number");
  constexpr auto least = std::numeric_limits<int>::min(), most = std::numeric_limits<int>::max();
  const bool fits = j.is_number_unsigned() ? j.get<std::uint64_t>() <= static_cast<std::uint64_t>(most)
                                           : j.get<std::int64_t>() >= least;
  if (!fits) refuse(where, "is out of range");
  return j.get<int>();
}

bool to_flag(const json& j, const std::string& where) {
  if (!j.is_boolean()) refuse(where, "must be true or false");
  return j.get<bool>();
}

std::string to_text(const json& j, const std::string& where) {
  if (!j.is_string()) refuse(where, "must be a string");
  return j.get<std::string>();
}

std::vector<int> to_ints(const json& j, const std::string& where) {
  return to_list(j, where, [&](const json& item) { return to_int(item, where); });
}

std::string to_word(const json& j, std::initializer_list<const char*> words, const std::string& where) {
  auto word = to_text(j, where);
  if (std::find(words.begin(), words.end(), word) == words.end())
    refuse(where, fmt::format("cannot be \"{}\"", word));
  return word;
}

std::int64_t to_count(const json& j, const std::string& where) {
  const std::uint64_t n = to_size(j, where);
  if (n > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    refuse(where, "is out of range");
  return static_cast<std::int64_t>(n);
}
std::vector<std::int64_t> to_counts(const json& j, const std::string& where) {
  return to_list(j, where, [&](const json& item) { return to_count(item, where); });
}

rope_scaling to_scaling(const json& j, const std::string& where) {
  if (!j.is_array() || j.size() != 5)
    refuse(where, "must be slowed by [rule, factor, low_freq_factor, high_freq_factor, original_positions]");
  const std::string rule = to_word(j[0], {"linear", "llama3"}, where);
  return {rule == "linear" ? rope_scaling::linear : rope_scaling::llama3, to_number(j[1], where),
          to_number(j[2], where), to_number(j[3], where), to_int(j[4], where)};
}
load_balance to_balance(const json& rate, const json& mean, const std::string& where) {
  const load_balance by{to_number(rate, where), to_number(mean, where)};
  if (!(by.rate > 0) || !(by.mean > 0))
    refuse(where, "must be moved by a step above 0 toward a mean above 0");
  return by;
}
double to_number(const json& j, const std::string& where) {
  if (!j.is_number()) refuse(where, "must be a number");
  return j.get<double>();
}

}  // namespace rankc::codegen::verifying
