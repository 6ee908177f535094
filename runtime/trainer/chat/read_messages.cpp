// SPDX-License-Identifier: Apache-2.0
#include "chat_text.hpp"
#include "tokenizer/json_weight.hpp"

namespace rankc::runtime {
namespace {

constexpr json_limits line_limits{std::size_t{1} << 31, std::size_t{1} << 20, 0};

/// The weight in a field of an object; `otherwise` for an object without that field.
std::optional<float> weight_in(const json_place& object, const std::string& field,
                               std::optional<float> otherwise) {
  if (field.empty() || object.at(field).is_null()) return otherwise;
  return read_weight(object.at(field));
}

chat_message read_message(const json_place& place, const std::string& weights_field,
                          std::optional<float> weight_of_line) {
  if (weights_field.empty()) place.allow_keys({"role", "content"});
  else place.allow_keys({"role", "content", weights_field});
  return {place.at("role").as<std::string>(), place.at("content").as<std::string>(),
          weight_in(place, weights_field, weight_of_line)};
}

}  // namespace

std::vector<chat_message> read_messages(std::string_view line, const std::string& name,
                                        const std::string& weights_field) {
  const auto root = parse_json<nlohmann::json>(line, name, 1, line_limits);
  const json_place all(name, root);
  if (const json_place tools = all.at("tools"); !tools.is_null() && !tools.value().empty())
    tools.refuse("no tools, because rankc's chat templates do not write them");
  const json_place messages = all.at("messages");
  const std::optional<float> of_line = weight_in(all, weights_field, std::nullopt);
  std::vector<chat_message> read;
  for (std::size_t i = 0; i < messages.size(); ++i)
    read.push_back(read_message(messages.at(i), weights_field, of_line));
  if (read.empty()) messages.refuse("at least one message");
  return read;
}

}  // namespace rankc::runtime
