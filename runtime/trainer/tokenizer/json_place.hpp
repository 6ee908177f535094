// SPDX-License-Identifier: Apache-2.0
// A value of a JSON file with its path in the file, such as pre_tokenizer.pretokenizers[1].type.
#pragma once
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "json/json_file.hpp"

namespace rankc::runtime {

class json_place {
 public:
  /// `file` and `value` must outlive the place.
  json_place(const std::string& file, const nlohmann::json& value, std::string path = {})
      : file_(&file), value_(&value), path_(std::move(path)) {}

  /// The value of a key; null if the object lacks it.
  /// Errors: failure (1) if the value is not an object.
  json_place at(const std::string& key) const {
    if (!value_->is_object()) refuse("an object");
    return {*file_, value_of(*value_, key), path_.empty() ? key : path_ + "." + key};
  }
  /// An element of a list.
  json_place at(std::size_t i) const { return {*file_, (*value_)[i], fmt::format("{}[{}]", path_, i)}; }

  const nlohmann::json& value() const { return *value_; }
  const std::string& file() const { return *file_; }
  bool is_null() const { return value_->is_null(); }

  /// The number of elements.
  /// Errors: failure (1) if the value is not a list.
  std::size_t size() const {
    if (!value_->is_array()) refuse("a list");
    return value_->size();
  }

  /// The value converted to a type.
  /// Errors: failure (1) for another type.
  template <class T>
  T as() const {
    if (std::optional<T> typed = value_as<T>(*value_)) return *std::move(typed);
    refuse(json_type_name<T>());
  }
  /// The same; `otherwise` for null and for a key that the object lacks.
  template <class T>
  T as_or(T otherwise) const {
    return is_null() ? otherwise : as<T>();
  }

  [[noreturn]] void refuse(std::string_view expected) const {
    refuse_value(*file_, 1, path_.empty() ? "the file" : path_, shown(*value_), expected);
  }

  /// Errors: failure (1) for an object with another key.
  void allow_keys(std::initializer_list<std::string_view> keys) const {
    if (!value_->is_object()) refuse("an object");
    for (const auto& [key, unused] : value_->items())
      if (std::find(keys.begin(), keys.end(), key) == keys.end())
        throw failure(1, "RC6703: {}: the field {} is not supported; supported are {}", *file_, at(key).path_,
                      fmt::format("{}", fmt::join(keys, ", ")));
  }

 private:
  const std::string* file_;
  const nlohmann::json* value_;
  std::string path_;
};

}  // namespace rankc::runtime
