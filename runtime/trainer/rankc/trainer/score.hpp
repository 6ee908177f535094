// SPDX-License-Identifier: Apache-2.0
// Log-probabilities of given continuations, as evaluation harnesses ask for them.
#pragma once
#include <rankc/trainer/trainer.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace rankc::runtime {

/// A continuation whose probability is wanted, and the tokens before it.
struct score_request {
  std::vector<std::int32_t> context, continuation;
};

/// The log-probability of a continuation, and whether each of its tokens is the likeliest at its place.
/// Units: nats.
struct score_answer {
  double logprob = 0;
  bool greedy = true;
};

/// Reads requests from lines of JSON: {"context": [ids], "continuation": [ids]}.
/// Errors: failure (1) with file and line for what is not such a line, for an id outside the vocabulary, and
/// for a continuation of more than `seq` tokens.
std::vector<score_request> read_score_requests(const std::string& file, int vocab, int seq);

/// The number of requests that one evaluation answers.
std::size_t score_batch(const description&);

/// Answers at most `score_batch` requests by one evaluation. Of a context and continuation that together
/// exceed seq + 1 tokens, the last are seen.
/// Errors: failure (1) where the program leaves no logits; failure (70) where logits are not finite.
std::vector<score_answer> score(engine&, std::span<const score_request>);

/// Answers the requests of a file, one line of JSON each, in order.
/// Errors: failure, with the exit code of the program.
void score(const description&, const install_engine&, const options&);

}  // namespace rankc::runtime
