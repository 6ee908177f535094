// SPDX-License-Identifier: Apache-2.0
#include "json_tree.hpp"

#include "document.hpp"

namespace rankc::codegen::schema {

namespace {

constexpr std::size_t most_fields = 64;

}  // namespace

nlohmann::json json_tree::read(const std::string& text) {
  if (!json::sax_parse(text, static_cast<nlohmann::json_sax<json>*>(this)))
    refuse("RC7128: certificate: the text is not JSON");
  return std::move(root_);
}

bool json_tree::start_object(std::size_t) {
  open_.push_back(json::object());
  path_.emplace_back();
  return true;
}

bool json_tree::key(string_t& name) {
  std::vector<std::string>& keys = path_.back();
  if (std::find(keys.begin(), keys.end(), name) != keys.end())
    refuse("RC7135: certificate: an object has the field \"{}\" twice", name);
  if (keys.size() == most_fields)
    refuse("RC7290: certificate: an object has more than {} fields", most_fields);
  keys.push_back(name);
  return true;
}

bool json_tree::end_object() {
  path_.pop_back();
  json object = take_innermost();
  return takes_(path_, object) || add(std::move(object));
}

bool json_tree::start_array(std::size_t) {
  open_.push_back(json::array());
  return true;
}

bool json_tree::end_array() { return add(take_innermost()); }

bool json_tree::add(json value) {
  if (open_.empty()) root_ = std::move(value);
  else if (open_.back().is_array()) open_.back().push_back(std::move(value));
  else open_.back()[path_.back().back()] = std::move(value);
  return true;
}

nlohmann::json json_tree::take_innermost() {
  json innermost = std::move(open_.back());
  open_.pop_back();
  return innermost;
}

}  // namespace rankc::codegen::schema
