// SPDX-License-Identifier: Apache-2.0
// Documents of a sequence do not see each other. Only one document's labels count; then changed tokens in the
// other documents change neither the loss nor a gradient, on every layout.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "batch.hpp"
#include "hashed_oracle.hpp"

namespace packed_isolation_test {

namespace {

using namespace rankc::runtime;

/// Tokens [begin, end) of a row.
struct document {
  std::uint64_t row;
  std::size_t begin, end;
  bool has(std::uint64_t r, std::size_t place) const { return r == row && place >= begin && place < end; }
  /// True for the end token just before the document.
  bool begins_after(std::uint64_t r, std::size_t place) const { return r == row && place + 1 == begin; }
};

constexpr std::int32_t end_of_document = 3;

std::vector<document> documents_of(const run& r) {
  std::vector<document> all;
  for (std::uint64_t row = 0; row < static_cast<std::uint64_t>(r.about.global_batch()); ++row) {
    const std::vector<std::int32_t> tokens = packed::row_of_tokens(r, 0, row);
    std::size_t begin = 0;
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
      if (tokens[i] != end_of_document && i + 2 < tokens.size()) continue;
      all.push_back({row, begin, i + 1});
      begin = i + 1;
    }
  }
  return all;
}

struct result {
  double loss;
  tensors gradients;
};

/// A step from the initial weights that counts the losses of one document. `change` changes the other tokens,
/// and `own` the first token of the document.
result step_of(const registered& program, const document& counted, bool change, bool own = false) {
  run r(program);
  hashed_oracle::load_weights(r);
  const auto read = [&](std::uint64_t row, const sample_view& to) {
    std::vector<std::int32_t> tokens = packed::row_of_tokens(r, 0, row);
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
      const bool is_own = counted.has(row, i);
      if (own && is_own && i == counted.begin) tokens[i] = (tokens[i] + 5) % 16;
      if (change && !is_own && !counted.begins_after(row, i)) tokens[i] = (tokens[i] + 1 + i % 7) % 16;
    }
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
      to.tokens[i] = tokens[i];
      to.targets[i] = counted.has(row, i) ? tokens[i + 1] : r.about.ignored_label;
    }
  };
  set_batch(*r.engine, read_batch(r.about, read));
  for (int microbatch = 0; microbatch < r.about.microbatches; ++microbatch)
    for (int dp = 0; dp < r.about.dp; ++dp) {
      std::vector<double> weights(r.about.tokens_of_microbatch());
      const auto seq = static_cast<std::size_t>(r.about.seq);
      const auto first = static_cast<std::uint64_t>((microbatch * r.about.dp + dp) * r.about.rows);
      for (std::size_t i = 0; i < weights.size(); ++i)
        weights[i] = counted.has(first + i / seq, i % seq) ? 1.5 : 0;
      const named_array given[]{{"token_weights", weights}};
      r.engine->set_inputs(dp, microbatch, given);
    }
  const step_output out = r.update();
  return {out.loss, r.tensors(region::gradients)};
}

/// The largest difference in the losses and in the gradients.
double difference(const result& a, const result& b) {
  double most = std::abs(a.loss - b.loss);
  for (const auto& [name, values] : a.gradients)
    for (std::size_t i = 0; i < values.size(); ++i)
      most = std::max(most, std::abs(values[i] - b.gradients.at(name)[i]));
  return most;
}

}  // namespace

TEST_CASE("other documents move neither the loss of a document nor its gradients") {
  int layouts = 0;
  for (const registered& program : host_registry) {
    if (program.job != "llama") continue;
    CAPTURE(program.layout);
    const std::vector<document> all = documents_of(run(program));
    int documents = 0, at_the_begin = 0, at_the_end = 0, moved = 0;
    double worst = 0;
    for (std::size_t n = 0; n < all.size(); n += 3) {  // every third document
      const document& d = all[n];
      if (d.end - d.begin < 2) continue;
      CAPTURE(d.row);
      CAPTURE(d.begin);
      const result expected = step_of(program, d, false);
      CHECK(expected.loss > 0.1);
      const double apart = difference(expected, step_of(program, d, true));
      CHECK(apart <= 1e-12);
      worst = std::max(worst, apart);
      moved += difference(expected, step_of(program, d, false, true)) > 1e-6;
      ++documents;
      at_the_begin += d.begin == 0;
      at_the_end += d.end == 16;
    }
    CHECK(documents >= 6);
    CHECK(at_the_begin > 0);
    CHECK(at_the_end > 0);
    CHECK(moved == documents);
    ++layouts;
    MESSAGE(program.layout << ": " << documents << " documents, largest difference " << worst);
  }
  CHECK(layouts == 12);
}

TEST_CASE("without documents the same change moves them") {
  for (const registered& program : host_registry) {
    if (program.job != "whole") continue;
    CAPTURE(program.layout);
    int documents = 0;
    for (const document& d : documents_of(run(program))) {
      if (d.begin < 2 || d.end - d.begin < 2) continue;
      CHECK(difference(step_of(program, d, false), step_of(program, d, true)) > 1e-6);
      if (++documents == 4) break;
    }
    CHECK(documents == 4);
  }
}

}  // namespace packed_isolation_test
