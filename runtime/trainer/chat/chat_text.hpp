// SPDX-License-Identifier: Apache-2.0
// A conversation as text for a model.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chat_form.hpp"

namespace rankc::runtime {

struct chat_message {
  std::string role, content;
  std::optional<float> weight{};  // the weight of its labels
};

/// Bytes [begin, end) of a text.
struct byte_range {
  std::size_t begin, end;

  bool operator==(const byte_range&) const = default;
};

/// `labels`: the parts that the model learns to write. These are the assistant's turns, each with the token
/// that ends it. `message_ends`: for each message, the end of the text up to and including it.
struct chat_text {
  std::string text;
  std::vector<byte_range> labels;
  std::vector<std::size_t> message_ends;
};

/// Reads the messages of a line: {"messages": [{"role": "user", "content": "..."}, ...]}. `name` stands for
/// the line in errors. Other keys of the line are ignored. `weights_field` is the key of a message's weight,
/// and of the line's for messages without one; empty: weights are not read.
/// Errors: failure (1) that names the value: for another format, for message keys that a template would not
/// write, for tools, and for a number that is no weight.
std::vector<chat_message> read_messages(std::string_view line, const std::string& name,
                                        const std::string& weights_field = {});

/// Writes a conversation by a template. `date` is for templates that state one.
/// Errors: failure (1) that begins with `name`, for roles that the template lacks or allows only in another
/// order.
chat_text write_chat(const chat_form&, const std::vector<chat_message>&, std::string_view date,
                     const std::string& name);

/// The text of one user message, up to the start of the assistant's turn.
std::string write_chat_prompt(const chat_form&, const std::string& content, std::string_view date);

}  // namespace rankc::runtime
