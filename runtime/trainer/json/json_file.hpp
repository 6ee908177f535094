// SPDX-License-Identifier: Apache-2.0
// JSON that other programs may have written: limited in size and depth, without duplicate keys, and read by
// type.
#pragma once
#include <rankc/runtime/failure.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rankc::runtime {

/// The limits of a file. `values`: objects, lists, texts, numbers and so on, counted together.
/// `ordered_keys`: keys of one ordered_json object, which compares each new key with all others.
struct json_limits {
  std::size_t bytes, values, ordered_keys;
};
inline constexpr json_limits settings_limits{std::size_t{1} << 24, std::size_t{1} << 20, 10'000};
inline constexpr json_limits header_limits{100'000'000, std::size_t{1} << 22, 10'000};  // safetensors headers
inline constexpr json_limits pieces_limits{std::size_t{1} << 30, std::size_t{1} << 27,
                                           50'000};  // checkpoint indexes

/// Parses a text. `Json` is nlohmann::json or nlohmann::ordered_json. `name` stands for the text in errors.
/// Errors: failure (`exit_code`) for what is not JSON, repeats a key, nests deeper than 32 levels or has more
/// values than `limits`.
template <class Json>
Json parse_json(std::string_view text, const std::string& name, int exit_code, const json_limits& limits);

/// Reads and parses a file.
/// Errors: as `parse_json`, and failure (`exit_code`) if the file cannot be read or is too large.
template <class Json>
Json read_json(const std::filesystem::path&, int exit_code, const json_limits&);

/// A value as messages show it: JSON of at most 80 bytes.
template <class Json>
std::string shown(const Json& value) {
  constexpr std::size_t most = 80;
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > most) text = text.substr(0, most - 3) + "...";
  return text;
}

/// A value converted to a type: text, a boolean, an integer in its range, a number, or a list of one of
/// these. Empty if the value has another type or is out of range.
template <class T, class Json>
std::optional<T> value_as(const Json& value) {
  if constexpr (std::same_as<T, std::string>) {
    if (value.is_string()) return value.template get<std::string>();
  } else if constexpr (std::same_as<T, bool>) {
    if (value.is_boolean()) return value.template get<bool>();
  } else if constexpr (std::integral<T>) {
    if (value.is_number_unsigned() && std::in_range<T>(value.template get<std::uint64_t>()))
      return static_cast<T>(value.template get<std::uint64_t>());
    if (value.is_number_integer() && !value.is_number_unsigned() &&
        std::in_range<T>(value.template get<std::int64_t>()))
      return static_cast<T>(value.template get<std::int64_t>());
  } else if constexpr (std::floating_point<T>) {
    if (value.is_number()) return value.template get<T>();
  } else if (value.is_array()) {
    T list;
    for (const Json& element : value) {
      const auto typed = value_as<typename T::value_type>(element);
      if (!typed) return std::nullopt;
      list.push_back(*typed);
    }
    return list;
  }
  return std::nullopt;
}

/// The name of a type in messages.
template <class T>
constexpr const char* json_type_name() {
  if constexpr (std::same_as<T, std::string>) return "a text";
  else if constexpr (std::same_as<T, bool>) return "true or false";
  else if constexpr (std::unsigned_integral<T>) return "a whole number that is not negative";
  else if constexpr (std::integral<T>) return "a whole number";
  else if constexpr (std::floating_point<T>) return "a number";
  else if constexpr (std::same_as<typename T::value_type, std::string>) return "a list of texts";
  else return "a list of whole numbers that are not negative";
}

[[noreturn]] inline void refuse_value(const std::string& name, int exit_code, std::string_view key,
                                      const std::string& found, std::string_view expected) {
  throw failure(exit_code, "RC6589: {}: {} is {}, expected {}", name, key, found, expected);
}

/// The value of a key; null if the object lacks the key, or is not an object.
template <class Json>
const Json& value_of(const Json& object, std::string_view key) {
  static const Json null;
  const auto at = object.find(std::string(key));
  return at == object.end() ? null : *at;
}

/// The typed value of a key. Messages name it `of` followed by the key.
/// Errors: failure (`exit_code`) that names file, key, value and expected type.
template <class T, class Json>
T required(const Json& object, const char* key, const std::string& of, const std::string& name,
           int exit_code) {
  const Json& found = value_of(object, key);
  if (std::optional<T> typed = value_as<T>(found)) return *std::move(typed);
  refuse_value(name, exit_code, of + key, shown(found), json_type_name<T>());
}

/// The typed value of a key, for a reader that names the file itself.
/// Errors: std::invalid_argument that names key, value and expected type.
template <class T, class Json>
T field(const Json& object, const char* key) {
  const Json& found = value_of(object, key);
  if (std::optional<T> typed = value_as<T>(found)) return *std::move(typed);
  throw std::invalid_argument(fmt::format("{} is {}, expected {}", key, shown(found), json_type_name<T>()));
}

/// The same; `otherwise` if the object lacks the key.
template <class T, class Json>
T field_or(const Json& object, const char* key, T otherwise) {
  if (!object.is_object()) throw std::invalid_argument(shown(object) + " is no object");
  return object.contains(key) ? field<T>(object, key) : otherwise;
}

}  // namespace rankc::runtime
