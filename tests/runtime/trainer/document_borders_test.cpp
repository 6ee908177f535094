// SPDX-License-Identifier: Apache-2.0
// The first tokens of documents in samples of Megatron's files, as their .idx files list them.
#include <document_borders.hpp>
#include <rankc/trainer/data.hpp>

#include "../../exit_with.hpp"
#include "fake_run.hpp"
#include "token_files.hpp"

#include <doctest/doctest.h>
#include <algorithm>
#include <array>

using namespace rankc::runtime;
using rankc::test::exit_of, rankc::test::exit_with;

namespace {

using numbers = std::vector<std::int32_t>;
constexpr int seq = 8;

/// Sequences of these lengths. Their tokens are `first`, `first` + 1, ...
std::vector<std::vector<std::uint16_t>> sequences_from(int first, const std::vector<int>& lengths) {
  std::vector<std::vector<std::uint16_t>> all;
  for (const int length : lengths) {
    all.emplace_back();
    for (int i = 0; i < length; ++i) all.back().push_back(static_cast<std::uint16_t>(first++));
  }
  return all;
}

/// Writes a folder with 134 tokens: two files of Megatron and then one of llm.c. Some documents have several
/// sequences, and some sequences are empty.
/// Returns: the tokens with which documents begin.
numbers write_files(const scratch& files) {
  const std::vector<int> of_a{5, 3, 0, 9, 1, 4, 0, 30, 2, 2}, of_b{6, 0, 7, 20, 5};
  megatron(files, "d/a", 8, sequences_from(0, of_a), {0, 2, 3, 3, 6, 9, 10});
  megatron(files, "d/b", 8, sequences_from(56, of_b), {0, 1, 3, 5});
  counting(files, "d/c.bin", 94, 40);
  return {0, 8, 22, 54, 56, 62, 69, 94};
}

/// Applies the definition: a document begins with one of these tokens, after the end token, with the sample,
/// and at a token that does not follow its predecessor.
numbers starts_by_definition(const numbers& tokens, const numbers& begins, int end) {
  numbers starts;
  for (int i = 0, start = 0; i < static_cast<int>(tokens.size()); ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (i > 0 && (std::ranges::count(begins, tokens[at]) != 0 || tokens[at - 1] == end ||
                  tokens[at] != tokens[at - 1] + 1))
      start = i;
    starts.push_back(start);
  }
  return starts;
}

description with_documents(const fake_program& program, int end) {
  description about = program.about;
  about.seq = seq;
  about.end_of_document = end;
  return about;
}

dataset open(const std::string& path, const sample_order& order) {
  return dataset(parse_data_spec(path), 65536, seq, order);
}

/// The sequences of a batch, from the array of all its rows.
std::vector<numbers> rows_of(const numbers& of) {
  std::vector<numbers> rows;
  for (auto at = of.begin(); at != of.end(); at += seq) rows.emplace_back(at, at + seq);
  return rows;
}

}  // namespace

TEST_CASE("documents begin where the index says, in each order, and behind the token too") {
  const scratch files;
  const numbers begins = write_files(files);
  const fake_program one(1, 1, 1, dtype::f64, 65536), two(1, 2, 1, dtype::f64, 65536);
  std::size_t inside = 0;
  for (const auto& [text, held_out] :
       {std::pair("none", 0.0), {"none", 0.3}, {"7", 0.3}, {"megatron:3", 0.0}})
    for (const int end : {25, 60000})
      for (const fake_program* program : {&one, &two}) {
        CAPTURE(text);
        const description about = with_documents(*program, end);
        const std::string path = files.path(std::string(text) == "megatron:3" ? "d/a" : "d");
        const dataset data = open(path, {parse_shuffle(text), held_out});
        for (const data_part part : {data_part::trained, data_part::held_out}) {
          if (part == data_part::held_out && held_out == 0) continue;
          for (std::uint64_t first = 0; first < 32; first += 8) {
            const batch b = read_batch(about, data, first, part);
            const auto rows = rows_of(b.tokens), starts = rows_of(b.document_starts);
            for (std::size_t i = 0; i < rows.size(); ++i) {
              CHECK(starts[i] == starts_by_definition(rows[i], begins, end));
              inside += starts[i].back() > 0;
            }
          }
        }
      }
  CHECK(inside > 100);
}

TEST_CASE("the token after a sample is marked where it begins a document") {
  const scratch files;
  const numbers begins = write_files(files);
  const dataset data = open(files.path("d"), {});
  int marked = 0;
  for (std::uint64_t s = 0; s < 16; ++s) {
    numbers tokens(seq), targets(seq);
    std::array<std::uint8_t, seq + 1> marks{};
    data.sample(s, {.tokens = tokens.data(), .targets = targets.data(), .document_begins = marks.data()});
    CHECK((marks[seq] == 1) == (std::ranges::count(begins, targets.back()) != 0));
    marked += marks[seq];
  }
  CHECK(marked == 2);  // tokens 8 and 56
}

TEST_CASE("labels across the borders of an index are ignored, also at the end of a sequence") {
  const scratch files;
  const numbers begins = write_files(files);
  const fake_program program(1, 1, 1, dtype::f64, 65536);
  int ignored = 0;
  for (const int end : {25, 60000})
    for (const char* shuffle : {"none", "7"}) {
      description about = with_documents(program, end);
      about.ignored_label = -100;
      const dataset data = open(files.path("d"), {parse_shuffle(shuffle), 0});
      const batch plain = read_batch(about, data, 0);
      about.ignore_across_documents = true;
      const batch across = read_batch(about, data, 0);
      for (std::size_t i = 0; i < plain.targets.size(); ++i) {
        const bool is_last = plain.tokens[i] == end || std::ranges::count(begins, plain.targets[i]) != 0;
        CHECK(across.targets[i] == (is_last ? -100 : plain.targets[i]));
        ignored += is_last;
      }
    }
  CHECK(ignored > 20);
}

TEST_CASE("a plan without documents, and files without an index, have no borders") {
  const scratch files;
  write_files(files);
  const fake_program program(1, 1, 1, dtype::f64, 65536);
  CHECK(read_batch(program.about, dataset(parse_data_spec(files.path("d")), 65536, program.about.seq), 0)
            .document_starts.empty());
  const batch b = read_batch(with_documents(program, 60000), open(files.path("d/c.bin"), {}), 0);
  CHECK(std::ranges::count(b.document_starts, 0) == static_cast<std::ptrdiff_t>(b.tokens.size()));
}

TEST_CASE("a run that goes on has the documents of the run without a stop") {
  const scratch files;
  write_files(files);
  fake_program program(1, 2, 1, dtype::f64, 65536);
  program.about.end_of_document = 60000;
  int number = 0;
  for (const std::string shuffle : {"none", "5", "megatron:5:48"}) {
    CAPTURE(shuffle);
    const std::string save = files.path("s" + std::to_string(number++));
    const auto batches_of = [&](std::vector<std::string> words) {
      std::vector<numbers> batches;
      words.insert(words.begin(), "train");
      const outcome done = run(program, words, [&](fake_engine& e) { e.batches = &batches; });
      CHECK_MESSAGE(done.code == 0, done.err);
      CHECK(done.out.find("RC6271: the plan's end_of_document, token 60000, ends none of the first 1024 "
                          "sequences of " +
                          files.path("d/a") + "; its 4 documents") != done.out.npos);
      return batches;
    };
    const std::vector<std::string> data{"--data", files.path("d/a"), "--shuffle", shuffle};
    const auto with = [&](std::vector<std::string> words) {
      words.insert(words.end(), data.begin(), data.end());
      return words;
    };
    const auto whole = batches_of(with({"--steps", "6"}));
    auto parts = batches_of(with({"--steps", "3", "--save", save}));
    const auto rest = batches_of({"--steps", "6", "--load", save});
    parts.insert(parts.end(), rest.begin(), rest.end());
    CHECK(parts == whole);
    const auto has_border = [](const numbers& b) {  // the last third of a batch has the starts
      return std::any_of(b.begin() + static_cast<std::ptrdiff_t>(b.size() / 3 * 2), b.end(),
                         [](std::int32_t start) { return start > 0; });
    };
    CHECK(std::ranges::any_of(whole, has_border));
  }
}

TEST_CASE("an index whose documents are not in order is refused") {
  const scratch files;
  const auto opened = [&](const std::vector<std::int64_t>& borders) {
    const std::string path = megatron(files, "m", 8, sequences_from(0, {5, 5}), borders);
    return exit_of([&] { open(path, {}); });
  };
  const std::string index = files.path("m.idx");
  CHECK(opened({0, 3}) == exit_with{1, {6270, {index, "1", "3", "0", "2"}}});
  CHECK(opened({0, 2, 1}) == exit_with{1, {6270, {index, "2", "1", "2", "2"}}});
  CHECK(opened({-1, 2}) == exit_with{1, {6270, {index, "0", "-1", "0", "2"}}});
  CHECK(opened({0, 0, 2, 2}).code == 0);
}
