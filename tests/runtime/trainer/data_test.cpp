// SPDX-License-Identifier: Apache-2.0
// Expected tokens: the definition at the head of the PyTorch baseline, evaluated in Python with exact
// integers.
#include <rankc/trainer/data.hpp>

#include "../../exit_with.hpp"
#include "fake_engine.hpp"
#include "scratch.hpp"

#include <doctest/doctest.h>
#include <cmath>
#include <cstring>
#include <numeric>

using namespace rankc::runtime;
using rankc::test::exit_of, rankc::test::exit_with;

namespace {

/// The tokens of a sample, followed by the last target; fails if the targets are not the shifted tokens.
std::vector<int> sample(const dataset& data, std::uint64_t s, int seq) {
  std::vector<std::int32_t> tokens(seq), targets(seq);
  data.sample(s, tokens.data(), targets.data());
  REQUIRE(std::equal(tokens.begin() + 1, tokens.end(), targets.begin()));
  tokens.push_back(targets.back());
  return {tokens.begin(), tokens.end()};
}

std::vector<int> sample(const std::string& spec, int vocab, std::uint64_t s, int seq) {
  return sample(dataset(parse_data_spec(spec), vocab, seq), s, seq);
}

/// A token file in llm.c's format; `count` is the header's count.
std::string bin(const std::vector<std::uint16_t>& tokens, int count, int magic = 20240520, int version = 1) {
  std::string bytes(1024 + 2 * tokens.size(), '\0');
  for (const auto& [at, value] : {std::pair{0, magic}, std::pair{4, version}, std::pair{8, count}})
    std::memcpy(bytes.data() + at, &value, 4);
  std::memcpy(bytes.data() + 1024, tokens.data(), 2 * tokens.size());
  return bytes;
}

exit_with opened(const std::string& spec, int vocab, int seq = 4) {
  return exit_of([&] { dataset(parse_data_spec(spec), vocab, seq); });
}

}  // namespace

TEST_CASE("synthetic tokens equal the baseline's") {
  using tokens = std::vector<int>;
  CHECK(sample("arith:1234", 500, 0, 8) == tokens{195, 202, 209, 216, 223, 230, 237, 244, 251});
  CHECK(sample("arith:1234", 500, 1, 8) == tokens{439, 443, 447, 451, 455, 459, 463, 467, 471});
  CHECK(sample("arith:1234", 500, 1000003, 8) == tokens{263, 266, 269, 272, 275, 278, 281, 284, 287});
  CHECK(sample("rand:1234", 500, 0, 8) == tokens{195, 302, 439, 165, 269, 42, 45, 222, 375});
  CHECK(sample("rand:1234", 500, 1, 8) == tokens{340, 453, 326, 126, 446, 126, 57, 447, 127});
  CHECK(sample("rand:1234", 500, 1000003, 8) == tokens{41, 432, 203, 34, 401, 1, 350, 74, 284});
  // The sum of seed and sample wraps around.
  CHECK(sample("arith:18446744073709551615", 50257, 5, 6) ==
        tokens{22713, 22715, 22717, 22719, 22721, 22723, 22725});
  CHECK(sample("rand:18446744073709551615", 50257, 5, 6) ==
        tokens{7759, 40182, 44157, 16970, 2526, 33148, 6987});
}

TEST_CASE("text is bytes, sample after sample, and wraps") {
  const scratch files;
  const std::string text = files.write("a.txt", std::string("abcdefghij\xff", 11));
  const dataset data(parse_data_spec(text), 256, 4);
  CHECK(sample(data, 0, 4) == std::vector<int>{'a', 'b', 'c', 'd', 'e'});
  CHECK(sample(data, 1, 4) == std::vector<int>{'e', 'f', 'g', 'h', 'i'});
  CHECK(sample(data, 2, 4) == sample(data, 0, 4));  // (11 - 1) / 4 = 2 samples
  CHECK(sample(data, 2000001, 4) == sample(data, 1, 4));
  CHECK(data.text() == text + ": 11 tokens; byte entropy 2.3979 nats");  // ln 11
}

TEST_CASE("a token file of llm.c") {
  const scratch files;
  std::vector<std::uint16_t> tokens(20);
  std::iota(tokens.begin(), tokens.end(), 480);
  const std::string file = files.write("t.bin", bin(tokens, 20));
  const dataset data(parse_data_spec(file), 500, 4);
  CHECK(sample(data, 3, 4) == std::vector<int>{492, 493, 494, 495, 496});
  CHECK(sample(data, 4, 4) == std::vector<int>{480, 481, 482, 483, 484});
  CHECK(data.text() == file + ": 20 tokens");
}

TEST_CASE("a directory is its text files in path order") {
  const scratch files;
  files.write("b.cpp", "BB");
  files.write("a/z.hpp", "ZZ");
  files.write("a.md", "AA");
  files.write(".git/config", "no");
  files.write("buildings/x.txt", "XX");
  files.write("picture", std::string("no\0", 3));
  files.write(".clang-format", "C");
  const token_stream read(files.path(), 256);
  std::vector<std::int32_t> tokens(read.size());
  read.copy(0, read.size(), tokens.data());
  CHECK(std::string(tokens.begin(), tokens.end()) == "CAAZZBBXX");
  CHECK(read.files() == 5);
  const std::string said = dataset(parse_data_spec(files.path()), 256, 4).text();
  CHECK(said.find("9 tokens in 5 files; byte entropy") != std::string::npos);
  CHECK(said.ends_with("; skipped: " + files.path(".git") + " (its name begins with a dot), " +
                       files.path("picture") + " (binary)"));
}

TEST_CASE("entropy of single tokens") {
  const scratch files;
  const auto entropy = [&](const std::string& text) {
    return byte_entropy(token_stream(files.write("e.txt", text), 256));
  };
  CHECK(entropy("aaa") == 0);
  CHECK(entropy("ab\xff-") == doctest::Approx(std::log(4.0)));
  CHECK(entropy("aaab") == doctest::Approx(0.75 * std::log(4.0 / 3) + 0.25 * std::log(4.0)));
}

TEST_CASE("files that cannot serve are refused by name, value and rule") {
  const scratch files;
  const std::string none = files.path("none.txt");
  CHECK(opened(none, 256) == exit_with{1, {6101, {none, "No such file or directory"}}});
  const std::string small = files.write("small.txt", "abcd");
  CHECK(opened(small, 256) == exit_with{1, {6135, {small, "4", "5", "4"}}});
  CHECK(opened(small, 255) == exit_with{1, {6149, {small, "255"}}});
  const std::vector<std::uint16_t> tokens = {1, 2, 3, 4, 5, 499};
  const std::string wide = files.write("wide.bin", bin(tokens, 6));
  CHECK(opened(wide, 500) == exit_with{});
  CHECK(opened(wide, 499) == exit_with{1, {6157, {wide, "499", "5", "1034", "498"}}});
  const std::string cut = files.write("cut.bin", bin(tokens, 7));
  CHECK(opened(cut, 500) == exit_with{1, {6155, {cut, "7", "2", "12"}}});
  const std::string longer = files.write("longer.bin", bin(tokens, 5));
  CHECK(opened(longer, 500) == exit_with{1, {6156, {longer, "5", "2", "12"}}});
  const std::string odd = files.write("odd.bin", bin(tokens, 6) + "x");
  CHECK(opened(odd, 500) == exit_with{1, {6156, {odd, "6", "2", "13"}}});
  const std::string negative = files.write("negative.bin", bin(tokens, -6));
  CHECK(opened(negative, 500) == exit_with{1, {6155, {negative, "-6", "2", "12"}}});
  const std::string raw = files.write("raw.bin", bin(tokens, 6, 12345));
  CHECK(opened(raw, 500) == exit_with{1, {6153, {raw, "12345", "20240520", "20240801"}}});
  const std::string questions = files.write("questions.bin", bin(tokens, 6, 20240522));
  CHECK(opened(questions, 500) == exit_with{1, {6152, {questions, "20240522"}}});
  for (const int version : {0, 2}) {
    const std::string other = files.write("other.bin", bin(tokens, 6, 20240520, version));
    CHECK(opened(other, 500) == exit_with{1, {6154, {other, std::to_string(version), "20240520", "1"}}});
  }
  const std::string header = files.write("header.bin", bin(tokens, 6).substr(0, 1000));
  CHECK(opened(header, 500) == exit_with{1, {6151, {header, "1000", "1024"}}});
  const std::string empty = files.write("empty.txt", "");
  CHECK(opened(empty, 256) == exit_with{1, {6135, {empty, "0", "5", "4"}}});
}

TEST_CASE("what --data cannot mean is a usage error") {
  CHECK(opened("arith:x", 500) == exit_with{2, {6055, {"arith:x", "arith:"}}});
  CHECK(opened("rand:-1", 500) == exit_with{2, {6055, {"rand:-1", "rand:"}}});
  const char* too_large = "arith:18446744073709551616";
  CHECK(opened(too_large, 500) == exit_with{2, {6055, {too_large, "arith:"}}});
  CHECK(opened("words", 500) == exit_with{2, {6057, {"words", "words"}}});
  CHECK(opened("", 500) == exit_with{2, {6056, {""}}});
  CHECK(opened("arith:1:0.5,rand:2", 500) == exit_with{2, {6058, {"arith:1:0.5,rand:2", "rand:2"}}});
  for (const char* none : {"arith:1:0.5,rand:2:0", "arith:1:0.5,rand:2:-1", "arith:1:0.5,rand:2:inf",
                           "arith:1:0.5,", "a.txt,b.txt"})
    CHECK(opened(none, 500).message.id == 6058);
  CHECK(opened("arith:1:1e308,rand:2:1.5e308", 500) ==
        exit_with{2, {6305, {"arith:1:1e308,rand:2:1.5e308", "arith:1", "1e+308", "inf"}}});
  CHECK(opened("arith:1:1,rand:2:1e-5", 500).message.id == 6305);
  CHECK(opened("arith:1:1,rand:2:2e-5", 500).code == 0);
}

TEST_CASE("a name that no file can have is refused like one that no file has") {
  const std::string name(300, 'a'), file = name + ".txt";
  CHECK(opened(name, 500) == exit_with{2, {6057, {name, name}}});
  CHECK(opened(name + ":0.5,rand:1:0.5", 500).message.id == 6057);
  CHECK(opened(file, 500) == exit_with{1, {6101, {file, "File name too long"}}});
  CHECK(exit_of([&] { array_folder(name, fake_program(1, 1, 1).about); }).message.id == 6246);
}

TEST_CASE("a batch goes to microbatches, then data-parallel ranks, then rows") {
  struct recorder : engine {
    explicit recorder(const description& d) : d(d) {}
    const description& about() const override { return d; }
    void set_batch(int dp, int microbatch, const std::int32_t* tokens, const std::int32_t* targets) override {
      for (int row = 0; row < d.rows; ++row)
        seen.push_back({microbatch, dp, row, tokens[row * d.seq], targets[row * d.seq + d.seq - 1]});
    }
    void set_document_starts(int, int, const std::int32_t*) override {}
    void set_inputs(int, int, std::span<const named_array>) override {}
    step_output step(const step_input&) override { return {}; }
    step_output traced_step(const step_input&, std::vector<traced>&) override { return {}; }
    double evaluate() override { return 0; }
    void read(int, region, std::size_t, std::size_t, double*) override {}
    void write(int, region, std::size_t, std::size_t, const double*) override {}
    std::size_t arena_bytes(int) const override { return 0; }
    const description& d;
    std::vector<std::array<int, 5>> seen;
  };
  const fake_program program(1, 2, 1, dtype::f64, 500);
  recorder e(program.about);
  const dataset data(parse_data_spec("rand:3"), 500, program.about.seq);
  const std::uint64_t step = 5, global_batch = 2 * 2 * 2;
  REQUIRE(program.about.global_batch() == global_batch);
  set_batch(e, data, step * global_batch);
  REQUIRE(e.seen.size() == global_batch);
  for (const auto& [m, r, b, first, last] : e.seen) {
    const std::uint64_t s = step * global_batch + m * (2 * 2) + r * 2 + b;
    const auto expected = sample(data, s, program.about.seq);
    CHECK(first == expected.front());
    CHECK(last == expected.back());
  }
}
