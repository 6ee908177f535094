// SPDX-License-Identifier: Apache-2.0
// Builds JSON from its text in linear time. nlohmann::json::parse with a callback takes longer: after each
// object in a list it visits all elements of the list.
#pragma once
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace rankc::codegen::schema {

/// The fields of the objects that contain a position of the text; the outermost object is first.
using json_path = std::vector<std::vector<std::string>>;

/// True if the last fields of the objects have these names.
inline bool is_at(const json_path& path, std::initializer_list<const char*> names) {
  return std::equal(
      path.begin(), path.end(), names.begin(), names.end(),
      [](const std::vector<std::string>& keys, const char* name) { return keys.back() == name; });
}

class json_tree : public nlohmann::json_sax<nlohmann::json> {
 public:
  using json = nlohmann::json;
  /// Called with each object at the end of its text. An object is not kept if the result is true.
  using taker = std::function<bool(const json_path& around, const json& object)>;

  explicit json_tree(taker takes) : takes_(std::move(takes)) {}

  /// Errors: runtime::failure if the text is not JSON, or if an object has a field twice or too many fields.
  json read(const std::string& text);

 private:
  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override;
  bool key(string_t&) override;
  bool end_object() override;
  bool start_array(std::size_t) override;
  bool end_array() override;
  bool parse_error(std::size_t, const std::string&, const json::exception&) override { return false; }
  bool add(json value);
  json take_innermost();

  taker takes_;
  json root_;
  std::vector<json> open_;  // the lists and objects that are being read
  json_path path_;
};

}  // namespace rankc::codegen::schema
