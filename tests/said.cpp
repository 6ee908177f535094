// SPDX-License-Identifier: Apache-2.0
#include "said.hpp"

#include <charconv>
#include <fstream>
#include <map>
#include <stdexcept>

namespace rankc::test {
namespace {

/// RANKC_MESSAGES: codegen/tool/messages.txt.
const std::map<int, std::string>& all_sentences() {
  static const std::map<int, std::string> all = [] {
    std::map<int, std::string> read;
    std::ifstream file(RANKC_MESSAGES);
    for (std::string line; std::getline(file, line);) read[std::stoi(line.substr(2, 4))] = line.substr(8);
    if (read.empty()) throw std::runtime_error("no sentences are in " RANKC_MESSAGES);
    return read;
  }();
  return all;
}

/// Whether a text is this sentence; appends the arguments that fill the sentence's holes.
bool match(std::string_view sentence, std::string_view text, std::vector<std::string>& arguments) {
  const std::size_t hole = sentence.find("{}");
  if (!text.starts_with(sentence.substr(0, hole))) return false;
  if (hole == sentence.npos) return true;
  text.remove_prefix(hole);
  sentence.remove_prefix(hole + 2);
  if (sentence.empty()) {
    arguments.emplace_back(text);
    return true;
  }
  const std::string_view up_to = sentence.substr(0, sentence.find("{}"));
  for (std::size_t at = text.find(up_to); at != text.npos; at = text.find(up_to, at + 1)) {
    arguments.emplace_back(text.substr(0, at));
    if (match(sentence, text.substr(at), arguments)) return true;
    arguments.pop_back();
  }
  return false;
}

}  // namespace

said said_in(std::string_view text, int id) {
  for (std::size_t at = text.find("RC"); at != text.npos; at = text.find("RC", at + 1)) {
    const std::string_view line = text.substr(at, text.find('\n', at) - at);
    said found;
    if (!runtime::detail::has_id(line)) continue;
    std::from_chars(line.data() + 2, line.data() + 6, found.id);
    if (id != 0 && id != found.id) continue;
    const auto sentence = all_sentences().find(found.id);
    if (sentence == all_sentences().end())
      throw std::runtime_error("messages.txt has no RC" + std::to_string(found.id));
    if (!match(sentence->second, line.substr(runtime::detail::id_length), found.arguments))
      throw std::runtime_error("another sentence than messages.txt has: " + std::string(line));
    return found;
  }
  return {};
}

}  // namespace rankc::test
