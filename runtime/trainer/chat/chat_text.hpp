// SPDX-License-Identifier: Apache-2.0
// A conversation as the text that a model is given.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "chat_form.hpp"

namespace rankc::runtime {

struct chat_message {
  std::string role, content;
};

/// Bytes [begin, end) of a text.
struct byte_range {
  std::size_t begin, end;

  bool operator==(const byte_range&) const = default;
};

/// `labels`: the parts that the model is to write, which are the assistant's turns with the token that ends
/// each.
struct chat_text {
  std::string text;
  std::vector<byte_range> labels;
};

/// Read the messages of a line: {"messages": [{"role": "user", "content": "..."}, ...]}. `name` stands for
/// the line in errors. Other keys of the line are not read.
/// Errors: failure (1) that names the value: for another form, for keys of a message that a template would
/// not write, and for tools.
std::vector<chat_message> read_messages(std::string_view line, const std::string& name);

/// Write a conversation by a template. `date` is for templates that have one.
/// Errors: failure (1) that begins with `name`, for roles that the template lacks or has in another order.
chat_text write_chat(const chat_form&, const std::vector<chat_message>&, std::string_view date,
                     const std::string& name);

/// The text of one user's message, up to the place where the assistant's turn begins.
std::string write_chat_prompt(const chat_form&, const std::string& content, std::string_view date);

}  // namespace rankc::runtime
