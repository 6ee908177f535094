// SPDX-License-Identifier: Apache-2.0
// The sentences with an id in runtime/ and codegen/: literals such as "RC6101: {} cannot be read: {}".
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lexer.hpp"

namespace rankc::style {

/// Adjacent literals are one sentence.
struct message {
  std::string id;  // "RC6101"
  std::string text;
  int line;
};

std::vector<message> messages(const lexed& source);

/// The sentence of each id.
/// Errors: std::runtime_error if two sentences have one id, or one sentence has two.
class message_list {
 public:
  void add(std::string_view path, const message&);
  /// One line per id, sorted: "RC6101: {} cannot be read: {}".
  std::string text() const;

 private:
  std::map<std::string, std::string> text_of_;
  std::map<std::string, std::string> id_of_;
};

}  // namespace rankc::style
