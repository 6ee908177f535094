// SPDX-License-Identifier: Apache-2.0
// The tokens of a schedule in text: `3F5`, `3SEND_F5`, `BATCH(...)`, `OVERLAP(...)`, `0UNSHARD`. A token has
// one spelling. Its stage is always the stage of the rank that runs it.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rankc::tool {

/// R recomputes a forward. SEND_B sends a stage's input gradient to the stage before it.
enum class token_kind { F, B, I, W, R, SEND_F, RECV_F, SEND_B, RECV_B, UNSHARD, RESHARD, REDUCE_GRAD, STEP };

/// `2F0`; `2F0.1` is the second split of the sequences of microbatch 0.
struct token {
  token_kind kind = token_kind::F;
  int stage = 0;
  int microbatch = 0, split = -1;  // split -1: sequences are not split
  bool operator==(const token&) const = default;
};

enum class item_kind { compute, message, sharding };

/// The tokens that a rank issues at once: one token, the messages of a BATCH, or the two computations of an
/// OVERLAP.
struct item {
  item_kind kind = item_kind::compute;
  std::vector<token> tokens;
};

std::string spell(const token&);

/// Reads one item; nothing if the text does not follow the grammar.
std::optional<item> read_item(std::string_view text);

}  // namespace rankc::tool
