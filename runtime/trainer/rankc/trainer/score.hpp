// SPDX-License-Identifier: Apache-2.0
// Log-probabilities of given continuations, for evaluation harnesses.
#pragma once
#include <rankc/trainer/trainer.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace rankc::runtime {

/// A continuation to score, and the tokens before it.
struct score_request {
  std::vector<std::int32_t> context, continuation;
};

/// The log-probability of a continuation, and whether each of its tokens is the most likely at its position.
/// Units: nats.
struct score_answer {
  double logprob = 0;
  bool greedy = true;
};

/// Reads requests from lines of JSON: {"context": [ids], "continuation": [ids]}.
/// Errors: failure (1) with file and line for another kind of line, for an id outside the vocabulary, and for
/// a continuation of more than `seq` tokens.
std::vector<score_request> read_score_requests(const std::string& file, int vocab, int seq);

/// The number of requests that one evaluation answers.
std::size_t score_batch(const description&);

/// Answers at most `score_batch` requests by one evaluation. If context and continuation together exceed seq
/// + 1 tokens, the last seq + 1 are used.
/// Errors: failure (1) if the program keeps no logits; failure (70) if logits are not finite.
std::vector<score_answer> score(engine&, std::span<const score_request>);

/// Answers the requests of a file in order, with one line of JSON each.
/// Errors: failure, with the exit code of the program.
void score(const description&, const install_engine&, const options&);

}  // namespace rankc::runtime
