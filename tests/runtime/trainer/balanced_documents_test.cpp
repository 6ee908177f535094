// SPDX-License-Identifier: Apache-2.0
#include "balanced_documents.hpp"

#include <rankc/runtime/documents.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <random>

namespace rankc::runtime::test::balanced_documents_test {
namespace {

constexpr int end = 7;

/// The attention cost of each data-parallel rank in each microbatch.
std::vector<std::vector<double>> loads(const std::vector<std::uint64_t>& costs,
                                       const std::vector<std::size_t>& order, int microbatches, int dp,
                                       int rows) {
  std::vector<std::vector<double>> of(static_cast<std::size_t>(microbatches));
  std::size_t place = 0;
  for (auto& microbatch : of)
    for (int rank = 0; rank < dp; ++rank) {
      double load = 0;
      for (int row = 0; row < rows; ++row) load += static_cast<double>(costs[order[place++]]);
      microbatch.push_back(load);
    }
  return of;
}

/// The time of a step whose ranks wait for each other in each microbatch, divided by the time with equal
/// loads.
double waiting(const std::vector<std::vector<double>>& loads) {
  double time = 0, all = 0;
  for (const auto& microbatch : loads) {
    time += *std::max_element(microbatch.begin(), microbatch.end());
    all +=
        std::accumulate(microbatch.begin(), microbatch.end(), 0.0) / static_cast<double>(microbatch.size());
  }
  return time / all;
}

std::vector<std::int32_t> random_tokens(std::size_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::vector<std::int32_t> tokens(count);
  // A sequence has short documents or long ones.
  for (std::size_t i = 0; i < count; ++i) {
    const bool ends = engine() % (i / 256 % 2 == 0 ? 40 : 400) == 0;
    tokens[i] = ends ? end : static_cast<int>(engine() % end);
  }
  return tokens;
}

/// The position at which the document of each token begins, in whole sequences.
std::vector<std::int32_t> starts_of(const std::vector<std::int32_t>& tokens, int seq) {
  std::vector<std::int32_t> starts(tokens.size());
  find_starts(tokens.data(), static_cast<int>(tokens.size()) / seq, seq, end, starts.data());
  return starts;
}

TEST_CASE("the cost of a sequence is the sum of its documents' squares") {
  const std::int32_t starts[]{0, 0, 0, 3, 4, 4, 4, 4};
  CHECK(document_cost(starts, 8) == 9 + 1 + 16);
  CHECK(document_cost(starts, 3) == 9);
  CHECK(document_cost(starts, 2) == 4);
}

TEST_CASE("sequences go to the ranks so that each microbatch costs all alike") {
  CHECK(balanced_order({1, 9, 2, 10}, 2, 2, 1) == std::vector<std::size_t>{3, 1, 0, 2});
  CHECK(balanced_order({5, 5, 5, 5}, 1, 2, 2) == std::vector<std::size_t>{0, 2, 1, 3});
  for (const auto& [microbatches, dp, rows] : {std::array{1, 4, 8}, {8, 4, 1}, {4, 2, 4}}) {
    CAPTURE(microbatches);
    const std::size_t n = static_cast<std::size_t>(microbatches * dp * rows);
    const auto starts = starts_of(random_tokens(n * 256, 3), 256);
    std::vector<std::uint64_t> costs;
    for (std::size_t i = 0; i < n; ++i) costs.push_back(document_cost(starts.data() + i * 256, 256));
    std::vector<std::size_t> given(n);
    std::iota(given.begin(), given.end(), std::size_t{0});
    auto order = balanced_order(costs, microbatches, dp, rows);
    const double before = waiting(loads(costs, given, microbatches, dp, rows)),
                 after = waiting(loads(costs, order, microbatches, dp, rows));
    CHECK(before > 1.08);
    CHECK(after < 1 + (before - 1) / 4);
    std::sort(order.begin(), order.end());
    CHECK(order == given);
  }
}

TEST_CASE("a batch keeps its sequences with their targets; other plans keep their order") {
  description about{};
  about.dp = 4;
  about.microbatches = 2;
  about.rows = 2;
  about.seq = 256;
  about.end_of_document = end;
  const auto tokens = random_tokens(16 * 256, 5);
  batch given{.tokens = tokens, .targets = tokens, .document_starts = starts_of(tokens, 256)};
  for (std::int32_t& x : given.targets) x += 100;
  given.inputs.resize(1);  // one number for each sequence: its first token
  for (std::size_t i = 0; i < 16; ++i) given.inputs[0].push_back(tokens[i * 256]);
  batch b = given;
  balance_documents(about, b);
  CHECK(b.tokens != given.tokens);
  std::vector<std::vector<std::int32_t>> before, after;
  for (std::size_t i = 0; i < 16; ++i) {
    const auto from = [&](const std::vector<std::int32_t>& all) {
      return all.begin() + static_cast<long>(i * 256);
    };
    before.emplace_back(from(given.tokens), from(given.tokens) + 256);
    after.emplace_back(from(b.tokens), from(b.tokens) + 256);
    CHECK(b.inputs[0][i] == b.tokens[i * 256]);
    for (int t = 0; t < 256; ++t) CHECK(from(b.targets)[t] == from(b.tokens)[t] + 100);
    CHECK(std::equal(from(b.document_starts), from(b.document_starts) + 256,
                     starts_of({from(b.tokens), from(b.tokens) + 256}, 256).begin()));
  }
  std::sort(before.begin(), before.end());
  std::sort(after.begin(), after.end());
  CHECK(before == after);
  for (const bool one_rank : {true, false}) {
    description other = about;
    batch same = given;
    if (one_rank) other.dp = 1;
    else same.document_starts.clear();  // as in a plan without documents, or without tokens
    balance_documents(other, same);
    CHECK(same.tokens == given.tokens);
  }
}

}  // namespace
}  // namespace rankc::runtime::test::balanced_documents_test
