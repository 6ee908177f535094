// SPDX-License-Identifier: Apache-2.0
// Plans that ignore labels across documents: their description, their evaluation, and labels that an
// application supplies.
#include <rankc/runtime/embedded.hpp>
#include <rankc/runtime/host/embedded.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "../../runtime/trainer/mean_loss.hpp"
#include "batch.hpp"
#include "hashed_oracle.hpp"

namespace packed_labels_test {

namespace {

using namespace rankc::runtime;

const registered& find_program(const std::string& job, const std::string& layout = "one") {
  return *std::find_if(host_registry.begin(), host_registry.end(),
                       [&](const registered& p) { return p.job == job && p.layout == layout; });
}

bool says(const registered& program, const std::string& text, const std::string& json) {
  const description& about = *program.about;
  const bool in_text = std::string(about.text).find(text) != std::string::npos,
             in_json = std::string(about.json).find(json) != std::string::npos;
  CHECK(in_text == in_json);
  return in_text && in_json;
}

}  // namespace

TEST_CASE("a program says that labels across documents are ignored") {
  for (const auto& [job, expected] : {std::pair("llama", true), std::pair("whole", false)})
    CHECK(says(find_program(job), "the label of a document's last token is ignored\n",
               "\"ignore_across_documents\":true") == expected);
}

TEST_CASE("an evaluation is the mean over the labels that are left") {
  run r(find_program("llama"));
  hashed_oracle::load_weights(r);
  const auto read = [&](std::uint64_t row, const sample_view& to) {  // token weights stay 0
    const std::vector<std::int32_t> tokens = packed::row_of_tokens(r, 0, row);
    std::copy_n(tokens.begin(), tokens.size() - 1, to.tokens);
    std::copy_n(tokens.begin() + 1, tokens.size() - 1, to.targets);
  };
  const auto evaluate = [&](std::uint64_t) { return evaluate_apart(*r.engine); };
  constexpr std::uint64_t samples = 11;  // a batch of eight, and three samples more
  double sum = 0;
  std::ptrdiff_t labels = 0;
  for (std::uint64_t s = 0; s < samples; ++s) {
    const batch b = read_batch(r.about, [&](std::uint64_t, const sample_view& to) { read(s, to); });
    const auto first = b.tokens.begin();
    const std::ptrdiff_t counted = 16 - std::count(first, first + 16, 3);
    CHECK(std::count(b.targets.begin(), b.targets.begin() + 16, -100) == 16 - counted);
    set_batch(*r.engine, b);
    sum += r.engine->evaluate() * static_cast<double>(counted);
    labels += counted;
  }
  const double found = mean_loss(*r.engine, read, samples, evaluate)->labels;
  CHECK(std::abs(found - sum / static_cast<double>(labels)) <= 1e-12);
}

TEST_CASE("an application ignores the label of a token that ends a document") {
  const registered& program = find_program("llama");
  embedded here;
  REQUIRE(embed(*std::get<const rankc::host::program*>(program.program), rankc::host::surroundings{.rank = 0},
                here)
              .ok());
  const std::size_t count = program.about->tokens_of_microbatch();
  std::vector<std::int32_t> tokens(count, 1), labels(count, 2);
  const std::vector<double> weights(count, 1);
  const named_array given[]{{"token_weights", weights}};
  CHECK(here.set_batch(0, tokens, labels, given).ok());
  tokens[15] = 3;
  CHECK(std::string(here.set_batch(0, tokens, labels, given).text) ==
        "RC6260: element 15 of targets is 2, and its token ends a document; this plan ignores the labels of "
        "such tokens: give -100");
  labels[15] = -100;
  CHECK(here.set_batch(0, tokens, labels, given).ok());
  std::vector<std::int32_t> starts(count, 0);
  std::fill_n(starts.begin() + 7, 9, 7);
  CHECK(std::string(here.set_batch(0, tokens, labels, given, starts).text) ==
        "RC6260: element 6 of targets is 2, and its token ends a document; this plan ignores the labels of "
        "such tokens: give -100");
  labels[6] = -100;
  CHECK(here.set_batch(0, tokens, labels, given, starts).ok());
}

}  // namespace packed_labels_test
