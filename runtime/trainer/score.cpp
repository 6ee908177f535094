// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/score.hpp>

#include "row_logits.hpp"
#include "steps.hpp"
#include <rankc/launch/say_error.hpp>
#include <rankc/runtime/failure.hpp>
#include <rankc/trainer/beginning.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <cmath>

namespace rankc::runtime {
namespace {

/// The input tokens of a request's forward pass: all but the last token, and of those the last seq.
std::vector<std::int32_t> seen_tokens(const score_request& request, std::size_t seq) {
  std::vector<std::int32_t> tokens = request.context;
  tokens.insert(tokens.end(), request.continuation.begin(), request.continuation.end() - 1);
  if (tokens.size() > seq) tokens.erase(tokens.begin(), tokens.end() - static_cast<std::ptrdiff_t>(seq));
  return tokens;
}

/// Adds the log-probability of the token after a position to an answer.
void add_token(const std::vector<double>& logits, std::int32_t token, score_answer& answer) {
  const auto likeliest = std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const double x : logits) sum += std::exp(x - *likeliest);
  answer.logprob += logits[static_cast<std::size_t>(token)] - *likeliest - std::log(sum);
  answer.greedy &= likeliest - logits.begin() == token;
}

/// Reads the answer to a request whose `seen` tokens are sequence `index` of the engine's batch.
score_answer answer_of(engine& e, const score_request& request, int seen, std::size_t index) {
  const int rows = e.about().rows, first = seen - static_cast<int>(request.continuation.size()),
            dp = static_cast<int>(index) / rows, row = static_cast<int>(index) % rows;
  score_answer answer;
  for (int position = first; position < seen; ++position)
    add_token(logits_at(e, dp, row, position),
              request.continuation[static_cast<std::size_t>(position - first)], answer);
  if (!std::isfinite(answer.logprob))
    throw failure(70, "RC6204: the log-probability of a continuation is {}", answer.logprob);
  return answer;
}

void print(const score_request& request, const score_answer& answer) {
  print_result(fmt::format("{{\"logprob\": {}, \"greedy\": {}, \"tokens\": {}}}\n", answer.logprob,
                           answer.greedy, request.continuation.size()));
}

}  // namespace

std::size_t score_batch(const description& about) {
  return static_cast<std::size_t>(about.rows) * static_cast<std::size_t>(about.dp);
}

std::vector<score_answer> score(engine& e, std::span<const score_request> requests) {
  std::vector<std::vector<std::int32_t>> seen;
  for (const score_request& request : requests)
    seen.push_back(seen_tokens(request, static_cast<std::size_t>(e.about().seq)));
  set_sequences(e, seen);
  e.evaluate();
  std::vector<score_answer> answers;
  for (std::size_t i = 0; i < requests.size(); ++i)
    answers.push_back(answer_of(e, requests[i], static_cast<int>(seen[i].size()), i));
  return answers;
}

void score(const description& about, const install_engine& install, const options& o) {
  refuse_one_rank(o, "score");
  layout_with_logits(about);
  const std::vector<score_request> requests = read_score_requests(o.requests, about.vocab_used, about.seq);
  console silent(false, false);
  const beginning b = begin_run(about, o, silent);
  const auto e = install();
  set_weights(*e, b, o, silent);
  const auto start = std::chrono::steady_clock::now();
  const std::size_t batch = score_batch(about);
  for (std::size_t first = 0; first < requests.size(); first += batch) {
    const auto some = std::span(requests).subspan(first, std::min(batch, requests.size() - first));
    const std::vector<score_answer> answers = score(*e, some);
    for (std::size_t i = 0; i < some.size(); ++i) print(some[i], answers[i]);
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  say_error("{}: scored {} requests in {:.1f} s, {:.1f} a second, {} in each evaluation of {} sequences\n",
            about.name, requests.size(), seconds, static_cast<double>(requests.size()) / seconds, batch,
            about.global_batch());
}

}  // namespace rankc::runtime
