// SPDX-License-Identifier: Apache-2.0
// A document packed into a sequence has the same loss and gradients as alone.
#include <doctest/doctest.h>

#include <set>

#include "run.hpp"

namespace packed_test {

namespace {

using rankc::runtime::region;

const registered& program_of(const std::string& job) {
  const auto at = std::find_if(host_registry.begin(), host_registry.end(),
                               [&](const registered& p) { return p.job == job && p.layout == "one"; });
  REQUIRE(at != host_registry.end());
  return *at;
}

/// Copies the weights of another run, and sets the rows of a table that the other run lacks to zero.
void copy_weights(run& to, const tensors& weights) {
  for (const auto& p : rankc::runtime::global_parameters(to.about)) {
    std::vector<double> values = weights.at(p.name);
    values.resize(p.count());
    rankc::runtime::write(*to.engine, p, region::weights, [&](std::size_t first, std::span<double> out) {
      std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(first), out.size(), out.begin());
    });
  }
}

struct document {
  int row, begin, length;
};
/// Applies the definition: a document ends at the end token, or at the end of the sequence.
std::vector<document> documents_of(const std::vector<std::int32_t>& tokens, int seq, int end) {
  std::vector<document> all;
  for (int row = 0; row < static_cast<int>(tokens.size()) / seq; ++row)
    for (int begin = 0, p = 0; p < seq; ++p)
      if (tokens[static_cast<std::size_t>(row * seq + p)] == end || p == seq - 1) {
        all.push_back({row, begin, p + 1 - begin});
        begin = p + 1;
      }
  return all;
}

/// True if token n ends a document: none in row 0, each in row 1, the first in row 2, the last in row 3, some
/// at random in the other rows.
bool ends_document(int n, int seq) {
  const int row = n / seq, p = n % seq;
  if (row < 2) return row == 1;
  if (row == 2) return p == 0;
  return row == 3 ? p == seq - 1 : (7 * n + n * n / 5) % 6 == 0;
}

std::vector<double> logits_of(run& r, int token) {
  std::vector<double> values(static_cast<std::size_t>(r.about.vocab_used));
  r.engine->logits(0, static_cast<std::size_t>(token), values.data());
  return values;
}

}  // namespace

TEST_CASE("the logits of a document's tokens are those of the document alone") {
  constexpr int seq = 16, rows = 12, end = 3, vocab = 8;
  run packed(program_of("gpt")), alone(program_of("unlimited"));
  copy_weights(alone, packed.tensors(region::weights));
  std::vector<std::int32_t> tokens(rows * seq), targets(rows * seq, 0);
  for (int n = 0; n < rows * seq; ++n) {
    const int other = (5 * n + n / 7) % (vocab - 1);
    tokens[static_cast<std::size_t>(n)] = ends_document(n, seq) ? end : other + (other >= end);
  }
  packed.engine->set_batch(0, 0, tokens.data(), targets.data());
  packed.engine->evaluate();
  const std::vector<document> all = documents_of(tokens, seq, end);
  std::set<int> lengths;
  double worst = 0, apart = 0;
  for (std::size_t first = 0; first < all.size(); first += rows) {
    std::vector<std::int32_t> given(tokens.size(),
                                    1);  // each document begins a sequence, so it does not see later ones
    const std::size_t count = std::min(all.size() - first, static_cast<std::size_t>(rows));
    for (std::size_t i = 0; i < count; ++i) {
      const document& d = all[first + i];
      std::copy_n(tokens.begin() + d.row * seq + d.begin, d.length,
                  given.begin() + static_cast<std::ptrdiff_t>(i) * seq);
      lengths.insert(d.length);
    }
    alone.engine->set_batch(0, 0, given.data(), targets.data());
    alone.engine->evaluate();
    for (std::size_t i = 0; i < count; ++i)
      for (int n = 0; n < all[first + i].length; ++n) {
        const std::vector<double> here =
                                      logits_of(packed, all[first + i].row * seq + all[first + i].begin + n),
                                  there = logits_of(alone, static_cast<int>(i) * seq + n);
        for (std::size_t k = 0; k < here.size(); ++k) {
          CHECK(std::abs(here[k] - there[k]) <= 1e-13);
          worst = std::max(worst, std::abs(here[k] - there[k]));
        }
      }
  }
  CHECK((lengths.count(1) == 1 && lengths.count(seq) == 1 && lengths.size() > 5));
  // They differ from those of the whole sequence.
  alone.engine->set_batch(0, 0, tokens.data(), targets.data());
  alone.engine->evaluate();
  for (int n = seq; n < rows * seq; ++n)
    for (std::size_t k = 0; k < static_cast<std::size_t>(vocab); ++k)
      apart = std::max(apart, std::abs(logits_of(packed, n)[k] - logits_of(alone, n)[k]));
  CHECK(apart > 1e-3);
  MESSAGE(all.size() << " documents, largest difference of a logit " << worst << "; of whole sequences "
                     << apart);
}

TEST_CASE(
    "loss and gradients of packed documents are those of as many sequences, by the token or by borders") {
  constexpr int length = 4, seq = 16, tokens_of_step = 192, end = 3;
  for (const bool by_token : {true, false}) {
    CAPTURE(by_token);
    run packed(program_of("gpt")), apart(program_of("apart"));
    tensors weights = packed.tensors(region::weights);
    copy_weights(apart, weights);  // the positions' table has four rows
    std::vector<std::int32_t> tokens(tokens_of_step), targets(tokens_of_step), starts(tokens_of_step);
    for (int n = 0; n < tokens_of_step; ++n) {
      const int other = (3 * n + n / 5) % 7;
      tokens[static_cast<std::size_t>(n)] =
          by_token && n % length == length - 1 ? end : other + (other >= end);
      starts[static_cast<std::size_t>(n)] = n % seq / length * length;
      targets[static_cast<std::size_t>(n)] = (2 * n + n / 3) % 8;
    }
    const auto step = [&](run& r) {
      r.engine->set_batch(0, 0, tokens.data(), targets.data());
      if (!by_token) r.engine->set_document_starts(0, 0, starts.data());
      return r.engine->step({1e-3, 0.1, 1.0, 0.9, 0.95, 1e-8, 1, 0, false, 0});
    };
    const auto a = step(packed), b = step(apart);
    CHECK(std::abs(a.loss - b.loss) <= 1e-14);
    const tensors g = packed.tensors(region::gradients), h = apart.tensors(region::gradients);
    const double scale = largest(h);
    double worst = 0;
    CHECK(scale > 1e-3);
    for (const auto& [name, values] : g) {
      CAPTURE(name);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double expected = i < h.at(name).size() ? h.at(name)[i] : 0;  // a position that no document has
        CHECK(std::abs(values[i] - expected) <= 1e-13 * scale);
        worst = std::max(worst, std::abs(values[i] - expected) / scale);
      }
    }
    CHECK(g.at("wpe").size() == seq / length * h.at("wpe").size());
    MESSAGE("largest difference of a gradient " << worst << " of the largest");
  }
}

TEST_CASE("all layouts take the borders that they are given") {
  double loss = 0, norm = 0;
  int programs = 0;
  for (const registered& program : host_registry) {
    if (program.job != "gpt" || !program.about->trains) continue;
    CAPTURE(program.layout);
    run r(program);
    rankc::runtime::batch b;
    const int seq = r.about.seq, count = r.about.global_batch() * seq;
    for (int n = 0, start = 0; n < count; ++n) {
      const int position = n % seq, other = (5 * n + n / 7) % 7;
      if (position == 0) start = 0;
      else if ((7 * n + n * n / 5) % 4 == 0) start = position;
      b.tokens.push_back(other + (other >= r.about.end_of_document));
      b.targets.push_back((2 * n + n / 3) % 8);
      b.document_starts.push_back(start);
    }
    rankc::runtime::set_batch(*r.engine, {b.tokens, b.targets});
    const double without = r.engine->evaluate();
    rankc::runtime::set_batch(*r.engine, b);
    const auto out = r.engine->step({1e-3, 0.1, 1.0, 0.9, 0.95, 1e-8, 1, 0, false, 0});
    CHECK(std::abs(out.loss - without) > 1e-5);
    if (programs++ == 0) {
      loss = out.loss;
      norm = out.grad_norm;
    }
    CHECK(std::abs(out.loss - loss) <= 1e-12);
    CHECK(std::abs(out.grad_norm - norm) <= 1e-11 * norm);
  }
  CHECK(programs > 5);
}

}  // namespace packed_test
