// SPDX-License-Identifier: Apache-2.0
// A plan that ignores labels across documents: the label of a document's last token is ignored, for every
// kind of data, in training and in evaluation.
#include <rankc/trainer/data.hpp>

#include "fake_run.hpp"
#include "token_files.hpp"

#include <doctest/doctest.h>

namespace rankc::runtime::test::labels_across_documents_test {

namespace {

using numbers = std::vector<std::int32_t>;
constexpr std::int32_t ignored = -100, end = 10;  // in text, a newline ends a document

/// Two plans of 8 sequences of 4 tokens. One of them ignores labels across documents.
struct two_plans {
  two_plans() {
    across.end_of_document = end;
    across.ignored_label = ignored;
    plain = across;
    across.ignore_across_documents = true;
  }
  const fake_program program{1, 1, 1};
  description across = program.about, plain{};
};

dataset open(const two_plans& plans, const std::string& data, const sample_order& order,
             const std::string& labels = {}) {
  std::vector<opened_source> sources = open_sources(parse_data_spec(data, labels), plans.across);
  const std::vector orders(sources.size(), order);
  return dataset(std::move(sources), plans.across.vocab_used, plans.across.seq, orders, {});
}

/// The numbers of documents that end inside a sequence and at the end of one.
struct ends {
  int inside = 0, at_the_end = 0;
};
/// Checks every label of some batches. If the data has borders, one may be after the last token of a
/// sequence.
ends check_batches(const two_plans& plans, const dataset& data, data_part which, int batches,
                   bool has_borders = false) {
  ends found;
  for (int n = 0; n < batches; ++n) {
    const auto first = static_cast<std::uint64_t>(n * plans.across.global_batch());
    const batch plain = read_batch(plans.plain, data, first, which),
                across = read_batch(plans.across, data, first, which);
    CHECK(across.tokens == plain.tokens);
    for (std::size_t i = 0; i < plain.tokens.size(); ++i) {
      const bool is_last = i % 4 == 3;
      const bool ends_document =
          plain.tokens[i] == end || (!is_last && plain.document_starts[i + 1] == static_cast<int>(i % 4) + 1);
      if (!ends_document && is_last && has_borders && across.targets[i] == ignored) continue;
      CHECK(across.targets[i] == (ends_document ? ignored : plain.targets[i]));
      if (!ends_document || plain.targets[i] == ignored) continue;
      if (is_last) ++found.at_the_end;
      else ++found.inside;
    }
  }
  return found;
}

/// 400 tokens, about a fifth of which end a document.
std::vector<std::uint16_t> some_tokens() {
  std::vector<std::uint16_t> tokens(400);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::size_t drawn = (i + 1) * 2654435761u >> 8;
    tokens[i] = static_cast<std::uint16_t>(drawn % 5 == 0 ? end : 20 + drawn % 90);
  }
  return tokens;
}

}  // namespace

TEST_CASE("labels of documents that end in a sequence, with it, and in the next one") {
  const two_plans plans;
  const scratch files;
  std::vector<std::uint16_t> tokens{1, 2, end, 3, 4, 5, 6, end, end, 7, 8, 9};
  tokens.resize(33, 30);
  const dataset data = open(plans, llm_c(files, "t.bin", tokens), {});
  const batch b = read_batch(plans.across, data, 0);
  CHECK(numbers(b.targets.begin(), b.targets.begin() + 12) ==
        numbers{2, end, ignored, 4, 5, 6, end, ignored, ignored, 8, 9, 30});
}

TEST_CASE("every kind of data ignores labels across documents, in each part and order") {
  const two_plans plans;
  const scratch files;
  const std::vector<std::uint16_t> tokens = some_tokens();
  const std::string plain = llm_c(files, "plain.bin", tokens), masked = llm_c(files, "masked.bin", tokens);
  files.write("masked.mask", mask(tokens.size(), [](std::uint64_t i) { return i % 3 == 0; }));
  std::vector<std::vector<std::uint16_t>> sequences;
  std::vector<std::vector<std::int32_t>> labels;
  for (std::size_t first = 0; first < tokens.size(); first += 10) {
    const auto from = tokens.begin() + static_cast<std::ptrdiff_t>(first);
    sequences.emplace_back(from, from + 10);
    labels.emplace_back(from, from + 10);
    labels.back()[first / 10 % 10] = ignored;
  }
  const std::string of_megatron = megatron(files, "sequences", 8, sequences),
                    of_labels = megatron(files, "labels", 4, labels);
  const std::string text = files.write("text.txt", std::string(tokens.begin(), tokens.end()));
  const auto check = [&](const dataset& data, bool has_borders) {
    const ends trained = check_batches(plans, data, data_part::trained, 5, has_borders),
               held_out = check_batches(plans, data, data_part::held_out, 2, has_borders);
    CHECK(trained.inside > 10);
    CHECK(trained.at_the_end > 3);
    CHECK(held_out.inside + held_out.at_the_end > 3);
  };
  const std::vector<std::string> all{plain, masked, of_megatron, text, plain + ":0.5," + text + ":0.5"};
  for (const std::string& data : all)
    for (const char* shuffle : {"none", "1"}) {
      CAPTURE(data);
      CAPTURE(std::string(shuffle));
      check(open(plans, data, {parse_shuffle(shuffle), 0.3}), data == of_megatron);
    }
  check(open(plans, of_megatron, {parse_shuffle("megatron:1"), 0.3}), true);
  check(open(plans, of_megatron, {parse_shuffle("megatron:1"), 0.3}, of_labels), true);
  const ends drawn = check_batches(plans, open(plans, "rand:3", {}), data_part::trained, 100);
  CHECK(drawn.inside + drawn.at_the_end > 3);
}

}  // namespace rankc::runtime::test::labels_across_documents_test
