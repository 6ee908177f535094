// SPDX-License-Identifier: Apache-2.0
// UTF-8 and its normal form C.
#include "../../../slowness.hpp"

#include <doctest/doctest.h>
#include <tokenizer/normal_form.hpp>
#include <tokenizer/utf8.hpp>

#include <chrono>
#include <string>
#include <utility>

using namespace rankc::runtime;

TEST_CASE("broken UTF-8 is replaced as Python does") {
  const auto repaired = [](const std::string& text) {
    std::size_t replaced = 0;
    const std::string out = repaired_utf8(text, replaced);
    return std::pair(out, replaced);
  };
  const auto is = [](const char* text, std::size_t replaced) {
    return std::pair(std::string(text), replaced);
  };
  CHECK(repaired("aé漢😀") == is("aé漢😀", 0));
  CHECK(repaired("\xc3(") == is("�(", 1));
  CHECK(repaired("\xf0\x90\x8c") == is("�", 1));
  CHECK(repaired("\xf0\x90\x8c"
                 "a") == is("�a", 1));
  CHECK(repaired("\xed\xa0\x80") == is("���", 3));  // a surrogate
  CHECK(repaired("\xc0\xaf\xe0\x80\xf4\x90") == is("������", 6));
  CHECK(repaired("\xff\x80") == is("��", 2));
}

TEST_CASE("normal form C") {
  CHECK(normal_form_c("") == "");
  CHECK(normal_form_c("e\u0301\n\u0301e") == "é\n\u0301e");
  CHECK(normal_form_c("\u212b\u0344\u0958") == "\u00c5\u0308\u0301\u0915\u093c");
  CHECK(normal_form_c("q\u0307\u0323") == "q\u0323\u0307");
  CHECK(normal_form_c("\u1100\u1161\u11a8") == "\uac01");
  CHECK(normal_form_c("e\u07fd\u0301 e\u0301") == "e\u07fd\u0301 é");  // U+07FD is of Unicode 11
}

TEST_CASE("a letter with a million marks takes seconds") {
  std::string text = "a";
  for (int i = 0; i < 500'000; ++i) text += "\u0301\u0323";
  const auto begin = std::chrono::steady_clock::now();
  const std::string formed = normal_form_c(text);
  CHECK(std::chrono::steady_clock::now() - begin < rankc::test::scaled(10));
  CHECK(formed.starts_with("\u1ea1\u0323\u0323"));
  CHECK(formed.ends_with("\u0301\u0301"));
}
