// SPDX-License-Identifier: Apache-2.0
#include "chat_form.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rankc/runtime/failure.hpp>

#include <algorithm>
#include <array>
#include <chrono>

namespace rankc::runtime {
namespace {

// Source: the chat_template of transformers' ChatML, and of these models' tokenizer_config.json:
// Meta-Llama-3-8B-Instruct, Mistral-Small-24B-Instruct-2501, gemma-3-4b-it, gpt-oss-20b (Apache-2.0).
constexpr chat_turn chatml_turns[]{
    {"system", "<|im_start|>system\n", "<|im_end|>", "\n"},
    {"user", "<|im_start|>user\n", "<|im_end|>", "\n"},
    {"tool", "<|im_start|>tool\n", "<|im_end|>", "\n"},
    {"assistant", "<|im_start|>assistant\n", "<|im_end|>", "\n"},
};
constexpr chat_turn llama3_turns[]{
    {"system", "<|start_header_id|>system<|end_header_id|>\n\n", "<|eot_id|>"},
    {"user", "<|start_header_id|>user<|end_header_id|>\n\n", "<|eot_id|>"},
    {"assistant", "<|start_header_id|>assistant<|end_header_id|>\n\n", "<|eot_id|>"},
};
constexpr chat_turn mistral_turns[]{
    {"system", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"},
    {"user", "[INST]", "[/INST]"},
    {"assistant", "", "</s>"},
};
constexpr chat_turn gemma_turns[]{
    {"user", "<start_of_turn>user\n", "<end_of_turn>", "\n"},
    {"assistant", "<start_of_turn>model\n", "<end_of_turn>", "\n"},
};
constexpr chat_turn gpt_oss_turns[]{
    {"system", "<|start|>developer<|message|># Instructions\n\n", "\n\n<|end|>"},
    {"user", "<|start|>user<|message|>", "<|end|>"},
    {"assistant", "<|start|>assistant<|channel|>final<|message|>", "<|end|>"},
};
constexpr std::string_view gpt_oss_begin =
    "<|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.\n"
    "Knowledge cutoff: 2024-06\nCurrent date: {date}\n\nReasoning: medium\n\n"
    "# Valid channels: analysis, commentary, final. Channel must be included for every message.<|end|>";

constexpr std::array forms{
    chat_form{.name = "chatml", .begin = "", .turns = chatml_turns, .prompt = "<|im_start|>assistant\n"},
    chat_form{.name = "llama3",
              .begin = "<|begin_of_text|>",
              .turns = llama3_turns,
              .prompt = "<|start_header_id|>assistant<|end_header_id|>\n\n",
              .trims = true},
    chat_form{.name = "mistral", .begin = "<s>", .turns = mistral_turns, .prompt = ""},
    chat_form{.name = "gemma",
              .begin = "<bos>",
              .turns = gemma_turns,
              .prompt = "<start_of_turn>model\n",
              .system = system_place::first_user_turn,
              .joins_system = "\n\n",
              .trims = true,
              .alternates = true},
    chat_form{.name = "gpt-oss",
              .begin = gpt_oss_begin,
              .turns = gpt_oss_turns,
              .prompt = "<|start|>assistant",
              .system = system_place::first,
              .last_end = "<|return|>"},
};
static_assert(std::all_of(forms.begin(), forms.end(), [](const chat_form& form) {
  return form.assistant().role == "assistant" && form.assistant().begin.starts_with(form.prompt);
}));

/// Appends the special tokens in a text: <...> and [...].
void append_special_tokens(std::string_view text, std::vector<std::string>& to) {
  for (std::size_t at = 0; (at = text.find_first_of("<[", at)) != text.npos;) {
    const std::size_t end = text.find(text[at] == '<' ? '>' : ']', at) + 1;
    const std::string token(text.substr(at, end - at));
    if (std::find(to.begin(), to.end(), token) == to.end()) to.push_back(token);
    at = end;
  }
}

/// True if a text is a valid date such as 2025-08-05.
bool is_date(const std::string& text) {
  constexpr std::string_view form = "dddd-dd-dd";
  const bool is_of_form = text.size() == form.size() &&
                          std::equal(text.begin(), text.end(), form.begin(),
                                     [](char c, char f) { return f == 'd' ? c >= '0' && c <= '9' : c == f; });
  if (!is_of_form) return false;
  const auto number = [&](std::size_t first, std::size_t count) {
    return std::stoi(text.substr(first, count));
  };
  return std::chrono::year_month_day(std::chrono::year(number(0, 4)),
                                     std::chrono::month(static_cast<unsigned>(number(5, 2))),
                                     std::chrono::day(static_cast<unsigned>(number(8, 2))))
      .ok();
}

}  // namespace

const chat_turn* chat_form::find(std::string_view role) const {
  const auto at =
      std::find_if(turns.begin(), turns.end(), [&](const chat_turn& turn) { return turn.role == role; });
  return at == turns.end() ? nullptr : &*at;
}

std::vector<std::string> chat_form::special_tokens() const {
  std::vector<std::string> tokens;
  append_special_tokens(begin, tokens);
  for (const chat_turn& turn : turns)
    for (const std::string_view text : {turn.begin, turn.end, turn.behind})
      append_special_tokens(text, tokens);
  append_special_tokens(last_end, tokens);
  return tokens;
}

std::string chat_form::roles() const {
  std::vector<std::string_view> names;
  if (system == system_place::first_user_turn) names.push_back("system");
  for (const chat_turn& turn : turns) names.push_back(turn.role);
  return fmt::format("{}", fmt::join(names, ", "));
}

const chat_form& chat_form_of(std::string_view name) {
  const auto* const at =
      std::find_if(forms.begin(), forms.end(), [&](const chat_form& form) { return form.name == name; });
  if (at == forms.end())
    throw failure(2, "RC6720: --chat {} is not a chat template of rankc; give one of {}", name,
                  chat_form_names());
  return *at;
}

void check_chat_date(const chat_form& form, const std::string& date) {
  if (form.has_date() && !is_date(date))
    throw failure(
        2, "RC6725: the template {} states a date, and --date is '{}'; give one, as in --date 2025-08-05",
        form.name, date);
  if (!form.has_date() && !date.empty())
    throw failure(2, "RC6726: the template {} states no date; leave out --date {}", form.name, date);
}

std::string chat_form_names() {
  std::vector<std::string_view> names;
  for (const chat_form& form : forms) names.push_back(form.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace rankc::runtime
