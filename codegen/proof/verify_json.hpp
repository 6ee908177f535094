// SPDX-License-Identifier: Apache-2.0
// JSON read strictly: what is not of the kind that is asked for is refused, with where it stands.
#pragma once
#include <nlohmann/json.hpp>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "verify_read.hpp"

namespace rankc::codegen::verifying {

using nlohmann::json;

/// A value as sentences show it: a number, a short string, or only the kind of what is longer.
std::string found(const json&);

/// The object's fields are these and no others.
void expect_fields(const json&, const std::vector<const char*>& names, const std::string& where);

std::uint64_t to_size(const json&, const std::string& where);
/// A number of elements, of rows or of tokens.
std::int64_t to_count(const json&, const std::string& where);
int to_int(const json&, const std::string& where);
double to_number(const json&, const std::string& where);
bool to_flag(const json&, const std::string& where);
std::string to_text(const json&, const std::string& where);
/// One of a few words.
std::string to_word(const json&, std::initializer_list<const char*> words, const std::string& where);

/// How rotary positions are slowed.
rope_scaling to_scaling(const json&, const std::string& where);
load_balance to_balance(const json& rate, const json& mean, const std::string& where);

template <class Each>
auto to_list(const json& j, const std::string& where, Each each) {
  if (!j.is_array()) refuse("RC7113: certificate: {} must be a list, found {}", where, found(j));
  std::vector<decltype(each(j))> result;
  result.reserve(j.size());
  for (const auto& item : j) result.push_back(each(item));
  return result;
}
std::vector<int> to_ints(const json&, const std::string& where);
std::vector<std::int64_t> to_counts(const json&, const std::string& where);

/// The model; where there is none, without layers.
specification to_model(const json&);

}  // namespace rankc::codegen::verifying
