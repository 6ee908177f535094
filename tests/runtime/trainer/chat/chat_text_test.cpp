// SPDX-License-Identifier: Apache-2.0
// Conversations as text, compared with those of transformers (tests/oracles/chat).
#include <chat/chat_text.hpp>

#include "../../../exit_with.hpp"
#include "../scratch.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace rankc::runtime;
using nlohmann::json;
using rankc::test::exit_of, rankc::test::exit_with, rankc::test::said;

namespace {

json oracle() { return json::parse(contents(std::string(RANKC_CHATS) + "/cases.json")); }

std::vector<chat_message> messages_of(const json& chat) {
  return read_messages(json{{"messages", chat}}.dump(), "line");
}

const std::string user = R"({"role": "user", "content": "u"})",
                  assistant = R"({"role": "assistant", "content": "a"})",
                  system_message = R"({"role": "system", "content": "s"})";

exit_with refused(const std::string& line) {
  return exit_of([&] { read_messages(line, "f:3"); });
}

exit_with refused_by(const char* form, const std::string& messages) {
  return exit_of([&] {
    write_chat(chat_form_of(form), read_messages("{\"messages\": [" + messages + "]}", "f:3"), "2025-08-05",
               "f:3");
  });
}

}  // namespace

TEST_CASE("each template writes the text of transformers, and the assistant's parts") {
  const json all = oracle();
  for (const json& c : all["cases"]) {
    CAPTURE(c["template"].get<std::string>());
    CAPTURE(c["chat"].get<std::string>());
    const chat_form& form = chat_form_of(c["template"].get<std::string>());
    const std::vector<chat_message> messages = messages_of(all["chats"][c["chat"].get<std::string>()]);
    const chat_text chat = write_chat(form, messages, all["date"].get<std::string>(), "line");
    CHECK(chat.text == c["text"].get<std::string>());
    const auto is_assistant = [](const chat_message& m) { return m.role == "assistant"; };
    CHECK(chat.labels.size() ==
          static_cast<std::size_t>(std::count_if(messages.begin(), messages.end(), is_assistant)));
    for (const byte_range& part : chat.labels) {
      CHECK(std::string_view(chat.text).substr(0, part.begin).ends_with(form.prompt));
      const std::string_view written = std::string_view(chat.text).substr(part.begin, part.end - part.begin);
      CHECK((written.ends_with(form.assistant().end) ||
             (!form.last_end.empty() && written.ends_with(form.last_end))));
    }
    if (c.contains("prompt"))
      CHECK(write_chat_prompt(form, messages[0].content, all["date"].get<std::string>()) ==
            c["prompt"].get<std::string>());
  }
  CHECK(all["cases"].size() >= 80);
}

TEST_CASE("the special tokens of a template are those that its texts spell") {
  CHECK(chat_form_of("chatml").special_tokens() == std::vector<std::string>{"<|im_start|>", "<|im_end|>"});
  CHECK(chat_form_of("mistral").special_tokens() ==
        std::vector<std::string>{"<s>", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[INST]", "[/INST]", "</s>"});
  CHECK(chat_form_of("gpt-oss").special_tokens() ==
        std::vector<std::string>{"<|start|>", "<|message|>", "<|end|>", "<|channel|>", "<|return|>"});
}

TEST_CASE("a line of another form is refused with its value") {
  CHECK(refused("{") == exit_with{1, {6596, {"f:3", "byte 2 is unexpected"}}});
  CHECK(refused("[]") == exit_with{1, {6589, {"f:3", "the file", "[]", "an object"}}});
  CHECK(refused("{}") == exit_with{1, {6589, {"f:3", "messages", "null", "a list"}}});
  CHECK(refused(R"({"messages": []})") ==
        exit_with{1, {6589, {"f:3", "messages", "[]", "at least one message"}}});
  CHECK(refused(R"({"messages": ["u"]})") ==
        exit_with{1, {6589, {"f:3", "messages[0]", "\"u\"", "an object"}}});
  CHECK(refused(R"({"messages": [{"role": "user"}]})") ==
        exit_with{1, {6589, {"f:3", "messages[0].content", "null", "a text"}}});
  CHECK(refused(R"({"messages": [)" + user + R"(, {"role": "assistant", "content": [{"text": "a"}]}]})") ==
        exit_with{1, {6589, {"f:3", "messages[1].content", R"([{"text":"a"}])", "a text"}}});
  CHECK(refused(R"({"messages": [{"role": "user", "content": "a", "name": "b"}]})") ==
        exit_with{1, {6703, {"f:3", "messages[0].name", "role, content"}}});
  CHECK(refused(R"({"messages": [)" + user + R"(], "tools": [{"type": "function"}]})").message.id == 6589);
  CHECK(refused(R"({"messages": [)" + user + R"(], "tools": [], "id": 7})") == exit_with{});
}

TEST_CASE("roles and orders that a template lacks are refused") {
  CHECK(exit_of([] { chat_form_of("qwen"); }) ==
        exit_with{2, {6720, {"qwen", "chatml, llama3, mistral, gemma, gpt-oss"}}});
  CHECK(refused_by("llama3", R"({"role": "tool", "content": "4"})") ==
        exit_with{1, {6721, {"f:3", "0", "tool", "llama3", "system, user, assistant"}}});
  CHECK(refused_by("gemma", user + ", " + R"({"role": "tool", "content": "4"})") ==
        exit_with{1, {6721, {"f:3", "1", "tool", "gemma", "system, user, assistant"}}});
  CHECK(refused_by("gemma", system_message) == exit_with{1, {6722, {"f:3", "gemma"}}});
  for (const char* form : {"gemma", "gpt-oss"})
    CHECK(refused_by(form, user + ", " + assistant + ", " + system_message) ==
          exit_with{1, {6723, {"f:3", "2", form}}});
  CHECK(refused_by("gemma", assistant) == exit_with{1, {6724, {"f:3", "0", "assistant", "gemma"}}});
  CHECK(refused_by("gemma", user + ", " + user) == exit_with{1, {6724, {"f:3", "1", "user", "gemma"}}});
  CHECK(refused_by("gemma", system_message + ", " + user + ", " + assistant) == exit_with{});
}
