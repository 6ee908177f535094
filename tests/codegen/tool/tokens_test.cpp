// SPDX-License-Identifier: Apache-2.0
// `rankc tokens` with a tokenizer.json, for JSON lines and compressed files.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "tokens_folder.hpp"

namespace rankc::tool {

namespace tokens_test {

const std::string lines = "{\"text\": \"one line\"}\n\n{\"id\": 2, \"text\": \"two\\nlines\"}\n";
// The same text in two members of gzip, and in two frames of zstd.
[[maybe_unused]] const char* const gzip =
    "1f8b0800000000000203ab562a49ad2851b25250cacf4b55c8c9cc4b55aae5e2aa56ca4c018a19010074e225341e000000"
    "1f8b0800000000000203d351502a49ad2851b202d2e5f93179399979a9c54ab55c0013c6a38818000000";
[[maybe_unused]] const char* const zstd =
    "28b52ffd201ef100007b2274657874223a20226f6e65206c696e65227d0a0a7b226964223a203228b52ffd2018c100002c202274"
    "65"
    "7874223a202274776f5c6e6c696e6573227d0a";

[[maybe_unused]] std::string bytes_of(const std::string& digits) {
  std::string bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2)
    bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  return bytes;
}

const fs::path oracles = RANKC_TOKENIZERS;

#ifdef RANKC_TEXT_LIBRARIES
TEST_CASE("tokens by a tokenizer.json, with those that begin and end a text") {
  const folder f;
  const fs::path text = f.write("a.txt", "The ranks<|end|>"), broken = f.write("b.txt", "\xc3(\xff");
  const fs::path model = oracles / "llama3.json";
  CHECK(f.run({.files = {text}, .model = model}).out == f.out.string() + ": 8 tokens of 1 files by " +
                                                            model.string() +
                                                            ", for a plan with vocab 559 or more\n");
  const ids plain = f.written();
  CHECK(plain.back() == 557);
  REQUIRE(f.run({.files = {text, text}, .model = model, .begins = true}).code == 0);
  ids twice{556};
  twice.insert(twice.end(), plain.begin(), plain.end());
  twice.insert(twice.end(), twice.begin(), twice.end());
  CHECK(f.written() == twice);
  CHECK(f.refused({.files = {text}, .model = model, .ends = true}) ==
        test::said{8111, {model.string(), "end-of-sentence", "--eos"}});
  const result r = f.run({.files = {broken}, .model = model});
  CHECK(r.code == 0);
  CHECK(test::said_in(r.errors) == test::said{8119, {broken.string(), "2"}});
  CHECK(f.refused({.files = {text}, .model = f.write("m.json", " {\"model\": 1}")}).id == 6589);
}

TEST_CASE("a folder stands for its tokenizer.json, whose configuration names the token that ends a text") {
  const folder f;
  const fs::path text = f.write("a.txt", "a"), model = f.scratch.path / "model";
  fs::create_directory(model);
  CHECK(f.refused({.files = {text}, .model = model}) == test::said{8118, {model.string()}});
  fs::create_symlink("tokenizer.json", model / "tokenizer.json");  // a symbolic link to itself
  CHECK(f.refused({.files = {text}, .model = model}) ==
        test::said{6585, {(model / "tokenizer.json").string(), "Too many levels of symbolic links"}});
  fs::remove(model / "tokenizer.json");
  fs::copy_file(oracles / "gpt2.json", model / "tokenizer.json");
  CHECK(f.refused({.files = {text}, .model = model, .ends = true}).id == 8111);
  std::ofstream(model / "tokenizer_config.json") << R"({"eos_token": "<|end|>"})";
  REQUIRE(f.run({.files = {text}, .model = model, .ends = true}).code == 0);
  CHECK(f.written().size() == 2);
  CHECK(f.written().back() == 557);
}

TEST_CASE("each JSON line is a text with its own end") {
  const folder f;
  const fs::path model = f.scratch.path / "model";
  fs::create_directory(model);
  fs::copy_file(oracles / "gpt2.json", model / "tokenizer.json");
  std::ofstream(model / "tokenizer_config.json") << R"({"eos_token": "<|end|>"})";
  const tokens_options o{.files = {f.write("a.jsonl", lines)}, .model = model, .ends = true, .field = "text"};
  REQUIRE(f.run(o).code == 0);
  const ids all = f.written();
  CHECK(std::count(all.begin(), all.end(), 557) == 2);
  CHECK(all.back() == 557);
}
#endif

TEST_CASE("JSON lines, gzip and zstd are read as what they are") {
  const folder f;
  const std::string texts = "one linetwo\nlines";
  std::vector<fs::path> files{f.write("a", lines), f.write("without_end", lines.substr(0, lines.size() - 1))};
#ifdef RANKC_COMPRESSIONS
  files.push_back(f.write("b", bytes_of(gzip)));
  files.push_back(f.write("c", bytes_of(zstd)));
#endif
  for (const fs::path& file : files) {
    CAPTURE(file.string());
    CHECK(f.run({.files = {file}, .field = "text"}).code == 0);
    CHECK(f.text() == texts);
    CHECK(f.run({.files = {file}}).code == 0);
    CHECK(f.text() == (file.filename() == "without_end" ? lines.substr(0, lines.size() - 1) : lines));
  }
}

TEST_CASE("a line that is not an object with a text is refused with its file and line") {
  const folder f;
  const auto refused = [&](const std::string& line) {
    const fs::path file = f.write("a.jsonl", lines + line + "\n" + lines);
    test::said all = f.refused({.files = {file}, .field = "text"});
    CHECK(all.arguments.front() == file.string() + ":4 (--field text)");
    all.arguments.erase(all.arguments.begin());
    return all;
  };
  CHECK(refused("{\"text\": 1}") == test::said{6589, {"text", "1", "a text"}});
  CHECK(refused("{\"content\": \"a\"}") == test::said{6589, {"text", "null", "a text"}});
  CHECK(refused("[]").id == 6589);
  CHECK(refused("{\"text\": \"a") == test::said{6596, {"byte 12 is unexpected"}});
  CHECK(refused("{\"text\": \"\xff\"}").id == 6596);
  CHECK(refused("{\"text\": \"a\", \"text\": \"b\"}").id == 6594);
}

#ifdef RANKC_COMPRESSIONS
TEST_CASE("a compressed file that ends too early or is damaged is refused") {
  const folder f;
  const auto refused = [&](const std::string& bytes) {
    const fs::path file = f.write("a", bytes);
    test::said all = f.refused({.files = {file}});
    CHECK(all.id == 8131);
    CHECK(all.arguments.front() == file.string());
    return std::pair(all.arguments.at(1), all.arguments.at(2));
  };
  for (const char* whole : {gzip, zstd}) {
    const std::string kind = whole == gzip ? "gzip" : "zstd", bytes = bytes_of(whole);
    const std::size_t first = whole == gzip ? 49 : 39;  // bytes of the first member or frame
    for (std::size_t kept = 4; kept < bytes.size(); ++kept)
      if (kept != first)
        CHECK(refused(bytes.substr(0, kept)) == std::pair(kind, std::string("it ends too early")));
    CHECK(f.run({.files = {f.write("a", bytes.substr(0, first))}}).code == 0);
    CHECK(f.text() == lines.substr(0, 30));
    CHECK(refused(bytes + "x").first == kind);
  }
  std::string damaged = bytes_of(gzip);
  damaged[20] = static_cast<char>(damaged[20] ^ 1);
  CHECK(refused(damaged).first == "gzip");
}
#endif

}  // namespace tokens_test

}  // namespace rankc::tool
