// SPDX-License-Identifier: Apache-2.0
#include "chat_text.hpp"
#include "tokenizer/json_place.hpp"

namespace rankc::runtime {
namespace {

constexpr json_limits line_limits{std::size_t{1} << 31, std::size_t{1} << 20, 0};

chat_message read_message(const json_place& place) {
  place.allow_keys({"role", "content"});
  return {place.at("role").as<std::string>(), place.at("content").as<std::string>()};
}

}  // namespace

std::vector<chat_message> read_messages(std::string_view line, const std::string& name) {
  const auto root = parse_json<nlohmann::json>(line, name, 1, line_limits);
  const json_place all(name, root);
  if (const json_place tools = all.at("tools"); !tools.is_null() && !tools.value().empty())
    tools.refuse("no tools, because rankc's chat templates do not write them");
  const json_place messages = all.at("messages");
  std::vector<chat_message> read;
  for (std::size_t i = 0; i < messages.size(); ++i) read.push_back(read_message(messages.at(i)));
  if (read.empty()) messages.refuse("at least one message");
  return read;
}

}  // namespace rankc::runtime
