// SPDX-License-Identifier: Apache-2.0
// The logits of a forward program give its own loss, and are the same in every layout.
#include <rankc/trainer/generate.hpp>
#include <rankc/trainer/parameters.hpp>
#include <rankc/trainer/score.hpp>

#include <gpt_dp2_tp2_pp2_program/program.hpp>
#include <gpt_dual_pipe_v_program/program.hpp>
#include <gpt_one_rank_program/program.hpp>
#include <gpt_pp2_program/program.hpp>
#include <rankc/runtime/host/rank.hpp>

#include "../said.hpp"

#include <doctest/doctest.h>
#include <cmath>
#include <string>
#include <vector>

using namespace rankc::runtime;

namespace {

const rankc::host::program* const programs[]{&gpt_one_rank::program, &gpt_pp2::program,
                                             &gpt_dp2_tp2_pp2::program, &gpt_dual_pipe_v::program};

std::unique_ptr<engine> installed(const rankc::host::program& p) {
  auto e = rankc::host::install(p);
  initialise(*e, 1);
  return e;
}

int id(int n, int of) { return (n * n * 31 + n * 7 + of) % 256; }

/// Minus the log of a target's probability, from the logits of a token.
double cross_entropy(engine& e, int dp, std::size_t token, int target) {
  const description& about = e.about();
  const auto columns =
      static_cast<std::size_t>(about.layouts[static_cast<std::size_t>(about.loss_at())].logits.columns);
  std::vector<double> all(columns * static_cast<std::size_t>(about.tp));
  for (int rank = 0; rank < about.world(); ++rank) {
    const rank_row& row = about.ranks[static_cast<std::size_t>(rank)];
    if (row.pp == about.loss_at() && row.dp == dp)
      e.logits(rank, token, all.data() + columns * static_cast<std::size_t>(row.tp));
  }
  double sum = 0;
  for (const double x : all) sum += std::exp(x);
  return std::log(sum) - all[static_cast<std::size_t>(target)];
}

}  // namespace

TEST_CASE("the loss is that of the logits") {
  for (const auto* p : programs) {
    const description& about = p->about;
    CAPTURE(std::string(about.name));
    const auto e = installed(*p);
    const int count = about.rows * about.seq;
    REQUIRE(about.layouts[static_cast<std::size_t>(about.loss_at())].logits.rows == count);
    const auto ids = [&](int of) {
      std::vector<std::int32_t> all(static_cast<std::size_t>(count));
      for (int i = 0; i < count; ++i) all[static_cast<std::size_t>(i)] = id(i, of);
      return all;
    };
    // All microbatches are equal, so the logits of the last one stand for all.
    for (int microbatch = 0; microbatch < about.microbatches; ++microbatch)
      for (int dp = 0; dp < about.dp; ++dp)
        e->set_batch(dp, microbatch, ids(3 + dp).data(), ids(90 + dp).data());
    const double loss = e->evaluate();
    double sum = 0;
    for (int dp = 0; dp < about.dp; ++dp)
      for (int i = 0; i < count; ++i)
        sum += cross_entropy(*e, dp, static_cast<std::size_t>(i), id(i, 90 + dp));
    CHECK(sum / (count * about.dp) == doctest::Approx(loss).epsilon(1e-6));
  }
}

TEST_CASE("the microbatch that is left is the one that is named") {
  for (const auto* p : programs) {
    const description& about = p->about;
    CAPTURE(std::string(about.name));
    const auto e = installed(*p);
    const std::vector<std::int32_t> none(static_cast<std::size_t>(about.rows * about.seq));
    const int named = about.layouts[static_cast<std::size_t>(about.loss_at())].logits.microbatch;
    const auto first_logit = [&](int microbatch) {
      for (int m = 0; m < about.microbatches; ++m)
        for (int dp = 0; dp < about.dp; ++dp) {
          std::vector<std::int32_t> ids = none;
          if (m == microbatch) ids[0] = 65;
          e->set_batch(dp, m, ids.data(), none.data());
        }
      e->evaluate();
      return cross_entropy(*e, 0, 0, 0);
    };
    const double other = first_logit(-1);
    for (int m = 0; m < about.microbatches; ++m) CHECK((first_logit(m) != other) == (m == named));
  }
}

TEST_CASE("what follows a prompt is the same text in every layout") {
  const std::vector<std::int32_t> prompt{84, 104, 101, 32};
  const auto text_of = [&](const rankc::host::program& p, const std::vector<std::int32_t>& begin, int count) {
    const auto e = installed(p);
    std::vector<std::int32_t> tokens = begin;
    for (int i = 0; i < count; ++i)
      tokens.push_back(choose_token(next_logits(*e, tokens), {.temperature = 0}, tokens.size()));
    return tokens;
  };
  const auto reference = text_of(gpt_one_rank::program, prompt, 4);
  for (const auto* p : programs) CHECK(text_of(*p, prompt, 4) == reference);
  // If there are more than seq tokens, only the last seq are used.
  std::vector<std::int32_t> longer(200);
  for (int i = 0; i < 200; ++i) longer[static_cast<std::size_t>(i)] = id(i, 0);
  const auto e = installed(gpt_pp2::program);
  CHECK(next_logits(*e, longer) == next_logits(*e, std::span<const std::int32_t>(longer).last(128)));
  CHECK(next_logits(*e, longer) != next_logits(*e, std::span<const std::int32_t>(longer).last(127)));
}

TEST_CASE("a continuation's log-probability is that of its tokens one by one") {
  for (const auto* p : programs) {
    const description& about = p->about;
    CAPTURE(std::string(about.name));
    const auto e = installed(*p);
    std::vector<score_request> requests;
    for (std::size_t r = 0; r < score_batch(about); ++r) {
      score_request& request = requests.emplace_back();
      for (int i = 0; i < 5 + 60 * static_cast<int>(r % 3); ++i)
        request.context.push_back(id(i, static_cast<int>(r)));
      for (int i = 0; i < 1 + static_cast<int>(r % 3); ++i)
        request.continuation.push_back(id(i, 7 + static_cast<int>(r)));
    }
    const std::vector<score_answer> answers = score(*e, requests);
    REQUIRE(answers.size() == requests.size());
    for (std::size_t r = 0; r < requests.size(); ++r) {
      CAPTURE(r);
      std::vector<std::int32_t> seen = requests[r].context;
      double sum = 0;
      bool greedy = true;
      for (const std::int32_t token : requests[r].continuation) {
        const std::vector<double> logits = next_logits(*e, seen);
        double all = 0;
        for (const double x : logits) all += std::exp(x);
        sum += logits[static_cast<std::size_t>(token)] - std::log(all);
        greedy &= choose_token(logits, {.temperature = 0}, 0) == token;
        seen.push_back(token);
      }
      CHECK(answers[r].logprob == doctest::Approx(sum).epsilon(1e-6));
      CHECK(answers[r].greedy == greedy);
    }
  }
}

TEST_CASE("logits that a rank does not have are refused") {
  const auto e = installed(gpt_pp2::program);
  double to[256];
  using rankc::test::said;
  const auto says = [&](int rank, std::size_t token) {
    return rankc::test::said_by([&] { e->logits(rank, token, to); });
  };
  CHECK(says(0, 0) == said{5011, {"0", "0", "0"}});
  CHECK(says(1, 512) == said{5011, {"1", "512", "512"}});
  CHECK(says(1, 511) == said{});
}
