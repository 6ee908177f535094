// SPDX-License-Identifier: Apache-2.0
#include "chat_examples.hpp"

#include <fmt/format.h>

#include <rankc/runtime/failure.hpp>

#include <algorithm>
#include <ostream>

#include "documents.hpp"

namespace rankc::tool {

namespace {

void check_model(const tokens_options& o, const text_encoder& by, const runtime::chat_form& form,
                 const std::vector<std::string>& special_tokens) {
  if (o.model.empty()) return;  // bytes
  if (!by.keeps_text)
    throw runtime::failure(1,
                           "RC8151: the SentencePiece model {} puts a space before a text or replaces white "
                           "space, so its tokens are not those of a chat template; give a tokenizer.json of "
                           "byte-level BPE, or a model that keeps the text, as Gemma's does",
                           o.model);
  for (const std::string& token : special_tokens)
    if (by.id_of(token) < 0)
      throw runtime::failure(1,
                             "RC8142: the model {} has no token {}, which the template {} writes; give the "
                             "template of this model: {}",
                             o.model, token, form.name, runtime::chat_form_names());
}

/// The labels of tokens with these ends: a token that has a byte of a part is a label. Tokens with the same
/// end have the same bytes.
std::vector<char> labels_within(const std::vector<runtime::byte_range>& parts,
                                const std::vector<std::size_t>& ends) {
  std::vector<char> labels(ends.size(), runtime::label_is_ignored);
  auto part = parts.begin();
  std::size_t begin = 0;  // of the token
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (i > 0 && ends[i] > ends[i - 1]) begin = ends[i - 1];
    while (part != parts.end() && part->end <= begin) ++part;
    if (part != parts.end() && ends[i] > part->begin) labels[i] = runtime::label_counts;
  }
  return labels;
}

}  // namespace

chat_examples::chat_examples(const tokens_options& o, const text_encoder& by, std::optional<int> end)
    : o_(o),
      by_(by),
      end_(end),
      form_(runtime::chat_form_of(o.chat)),
      special_tokens_(form_.special_tokens()) {
  runtime::check_chat_date(form_, o.date);
  check_model(o, by, form_, special_tokens_);
}

void chat_examples::for_each(const std::filesystem::path& file, const visit_example& visit) {
  for_each_line(file, [&](const std::string& line, std::size_t number) {
    visit(example_of(line, fmt::format("{}:{}", file.string(), number)));
  });
}

example chat_examples::example_of(const std::string& line, const std::string& name) {
  const std::vector<runtime::chat_message> messages = runtime::read_messages(line, name, o_.weights_field);
  count_spelled(messages, name);
  const runtime::chat_text chat = runtime::write_chat(form_, messages, o_.date, name);
  example out;
  std::vector<std::size_t> ends;
  by_.encode_with_ends(chat.text, out.ids, ends);
  out.labels = o_.loss == "all" ? std::vector<char>(ends.size(), runtime::label_counts)
                                : labels_within(chat.labels, ends);
  if (!out.labels.empty()) out.labels.front() = runtime::label_is_ignored;
  if (!o_.weights_field.empty()) add_weights(out, messages, chat.message_ends, ends, name);
  ++examples_;
  without_labels_ += std::count(out.labels.begin(), out.labels.end(), runtime::label_counts) == 0;
  if (end_) add_end(out, name);
  return out;
}

/// Each token has the weight of the message in whose text it ends.
void chat_examples::add_weights(example& to, const std::vector<runtime::chat_message>& messages,
                                const std::vector<std::size_t>& message_ends,
                                const std::vector<std::size_t>& ends, const std::string& name) const {
  std::size_t message = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    while (message + 1 < messages.size() && message_ends[message] < ends[i]) ++message;
    const std::optional<float> weight = messages[message].weight;
    if (!weight && to.labels[i] == runtime::label_counts)
      throw runtime::failure(1,
                             "RC6300: {}: message {} has labels and no weight; give {} to the message, or to "
                             "its line for all messages",
                             name, message, o_.weights_field);
    to.weights.push_back(weight.value_or(0));
  }
}

void chat_examples::add_end(example& to, const std::string& name) const {
  if (std::find(to.ids.begin(), to.ids.end(), *end_) != to.ids.end())
    throw runtime::failure(1,
                           "RC8149: {}: the conversation has the token {} of --end-of-document, which would "
                           "end it early; give a "
                           "token that no conversation has",
                           name, o_.end_of_document);
  to.ids.push_back(*end_);
  to.labels.push_back(runtime::label_is_ignored);
  if (!o_.weights_field.empty()) to.weights.push_back(0);
}

void chat_examples::count_spelled(const std::vector<runtime::chat_message>& messages,
                                  const std::string& name) {
  for (const runtime::chat_message& message : messages) {
    const bool spells = std::any_of(
        special_tokens_.begin(), special_tokens_.end(),
        [&](const std::string& token) { return message.content.find(token) != message.content.npos; });
    if (spells && spelled_++ == 0) first_spelled_ = name;
  }
}

void chat_examples::note(std::ostream& to) const {
  if (spelled_ > 0)
    to << "note: "
       << runtime::say(
              "RC8143: {} messages spell special tokens of the template {}, the first in {}; their text "
              "becomes "
              "these tokens",
              spelled_, form_.name, first_spelled_)
       << "\n";
  if (without_labels_ > 0)
    to << "note: "
       << runtime::say(
              "RC8144: {} of {} conversations have no label, because the assistant says nothing in them",
              without_labels_, examples_)
       << "\n";
}

}  // namespace rankc::tool
