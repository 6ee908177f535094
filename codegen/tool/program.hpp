// SPDX-License-Identifier: Apache-2.0
// A pipeline program given as tokens, of rankc or of another system: what each rank issues in order, and the
// ranks of its stages.
#pragma once
#include <cstddef>
#include <limits>
#include <optional>
#include <unordered_map>
#include <vector>

#include "lines.hpp"
#include "token.hpp"

namespace rankc::tool {

/// How the messages of a rank form queues.
///   edge  one queue for each peer and direction, as in rankc's runtime: a stream for each
///   pair  one queue for each peer: a communicator for each pair
///   rank  one queue for all messages: one communicator
enum class queues { edge, pair, rank };

/// The position of a token.
struct place {
  int rank = -1, index = -1;
};

/// Shapes: `ranks` (pp); `rank_of_stage` (stages).
struct text_program {
  std::vector<std::vector<item>> ranks;
  int stages = 0, microbatches = 0, splits = 1;
  bool split_sequences = false;  // every token names its split
  bool training = false, has_messages = false;
  queues by = queues::edge;
  std::vector<int> rank_of_stage;           // -1: no rank runs anything of the stage
  std::vector<int> reversed_rank_of_stage;  // of the microbatches from `reversed_from` on (DualPipe)
  int reversed_from = std::numeric_limits<int>::max();

  int rank_of(int stage, int microbatch) const {
    return (microbatch < reversed_from ? rank_of_stage
                                       : reversed_rank_of_stage)[static_cast<std::size_t>(stage)];
  }
  token make(token_kind kind, int stage, int microbatch, int split) const {
    return {kind, stage, microbatch, split_sequences ? split : -1};
  }
};

/// Reads the program of a line: "ranks", and optionally "stage_to_rank", "stage_to_rank_rev" with "mb_split",
/// "pp", "stages_per_rank", "microbatches", "seq_splits", "inference", "queues" and "source". Absent values
/// follow from the tokens. A program of another system ("source") is checked with the strictest queues, one
/// for each rank.
/// Errors: RC8030 to RC8044, RC8080 to RC8085; RC302 and RC303 if the stages are not those that the line
/// states.
std::optional<text_program> read_program(const json& line, report& out);

struct token_hash {
  std::size_t operator()(const token& t) const {
    std::size_t h = static_cast<std::size_t>(t.kind);
    for (int n : {t.stage, t.microbatch, t.split}) h = (h ^ static_cast<std::size_t>(n)) * 0x9e3779b97f4a7c15;
    return h ^ h >> 32;
  }
};

/// The position of each token.
class token_index {
 public:
  /// Adds a token. Returns: its earlier position, if it occurs twice.
  std::optional<place> add(const token&, place);
  std::optional<place> find(const token&) const;
  bool has(const token& t) const { return places_.contains(t); }

 private:
  std::unordered_map<token, place, token_hash> places_;
};

/// The computations whose results a computation uses. A recomputation is one of them.
std::vector<token> producers(const text_program&, const token_index&, const token&);

}  // namespace rankc::tool
