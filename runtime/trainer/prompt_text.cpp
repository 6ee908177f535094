// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/prompt_text.hpp>

#include <rankc/runtime/failure.hpp>
#include <rankc/trainer/model_files.hpp>

#include <fmt/format.h>

#include <utility>

#include "chat/chat_text.hpp"
#include "tokenizer/tokenizer.hpp"
#include "tokenizer/utf8.hpp"

namespace rankc::runtime {
namespace {

constexpr int byte_tokens = 256;

/// The tokenizer of the folder that a run began with; null if its file is missing or cannot be read.
std::unique_ptr<tokenizer> tokenizer_of_origin(const std::filesystem::path& origin,
                                               std::vector<std::string>& notes) try {
  if (!is_there(tokenizer_file(origin), 1)) return nullptr;
  return std::make_unique<tokenizer>(read_tokenizer(origin));
} catch (const failure& reason) {
  notes.push_back(
      say("RC6071: text is read and printed as bytes, because the tokenizer of {} cannot be used: {}", origin,
          reason.what()));
  return nullptr;
}

}  // namespace

prompt_text::prompt_text(const description& about, const std::string& asked,
                         const std::optional<std::filesystem::path>& origin,
                         std::vector<std::string>& notes) {
  if (!asked.empty() && asked != "bytes") by_ = std::make_unique<tokenizer>(read_tokenizer(asked));
  if (asked.empty() && origin) by_ = tokenizer_of_origin(*origin, notes);
  if (by_ == nullptr && about.vocab_used < byte_tokens)
    throw failure(2,
                  "RC6068: --prompt is read as bytes, which are tokens 0 to 255, but this plan's vocabulary "
                  "has {}; give --tokenizer or --prompt-tokens FILE",
                  about.vocab_used);
  name_ = asked.empty() && origin ? origin->string() : asked;
  if (by_ != nullptr && by_->size() > about.vocab_used)
    throw failure(1,
                  "RC6070: the tokenizer of {} has {} tokens, but this plan's vocabulary has {}; give the "
                  "tokenizer of this model, or --tokenizer bytes",
                  name_, by_->size(), about.vocab_used);
}

prompt_text::~prompt_text() = default;

std::vector<std::int32_t> prompt_text::opening() const {
  return by_ == nullptr ? std::vector<std::int32_t>{} : by_->opening();
}

std::vector<std::int32_t> prompt_text::tokens_of(const std::string& text) const {
  std::vector<std::int32_t> ids;
  std::size_t replaced = 0;
  if (by_ != nullptr) by_->encode(repaired_utf8(text, replaced), ids);
  else
    for (const char byte : text) ids.push_back(static_cast<unsigned char>(byte));
  return ids;
}

std::vector<std::int32_t> prompt_text::tokens_of_chat(const chat_form& form, const std::string& message,
                                                      const std::string& date) const {
  if (by_ != nullptr)
    for (const std::string& token : form.special_tokens())
      if (by_->id_of(token) < 0)
        throw failure(1,
                      "RC6073: the tokenizer of {} has no token {}, which the template {} writes; give the "
                      "template of this model: {}",
                      name_, token, form.name, chat_form_names());
  std::size_t replaced = 0;
  return tokens_of(write_chat_prompt(form, repaired_utf8(message, replaced), date));
}

std::vector<std::int32_t> prompt_text::ends_of(const chat_form& form) const {
  std::vector<std::int32_t> ends;
  if (by_ == nullptr) return ends;
  for (const std::string_view end : {form.assistant().end, form.last_end})
    if (!end.empty()) ends.push_back(by_->id_of(end));
  return ends;
}

std::string prompt_text::text_of(std::int32_t token) const {
  if (by_ == nullptr && token < byte_tokens) return std::string(1, static_cast<char>(token));
  const std::string text(by_ == nullptr ? "" : by_->bytes_of(token));
  return text.empty() ? fmt::format("<{}>", token) : text;
}

}  // namespace rankc::runtime
