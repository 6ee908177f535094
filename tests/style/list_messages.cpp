// SPDX-License-Identifier: Apache-2.0
// rankc_messages FILE...
//
// Prints all sentences with an id in these sources, one per line, sorted by id: codegen/tool/messages.txt.
// The exit code is 1 if two sentences share an id, or one sentence has two.
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>

#include "messages.hpp"

int main(int count, char** arguments) {
  rankc::style::message_list list;
  try {
    for (int i = 1; i < count; ++i) {
      std::ifstream file(arguments[i], std::ios::binary);
      const std::string text{std::istreambuf_iterator<char>(file), {}};
      for (const auto& m : rankc::style::messages(rankc::style::lex(text))) list.add(arguments[i], m);
    }
  } catch (const std::exception& fault) {
    std::cerr << fault.what() << '\n';
    return 1;
  }
  std::cout << list.text();
}
