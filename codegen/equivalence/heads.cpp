// SPDX-License-Identifier: Apache-2.0
// The all-to-all between all tokens of some heads and some tokens of all heads, for ranks that shard
// sequences. Elements move with their boxes; their terms do not matter.

#include "collectives.hpp"

namespace rankc::codegen::algebra {

namespace {

struct rectangle {
  std::int64_t row, col, rows, cols;
};

/// Copies a rectangle of `from`, whose rows have `from_width` elements, to `row` and `col` of `to`, whose
/// rows have `width` elements.
void move(const content& from, std::int64_t from_width, const rectangle& r, content& to, std::int64_t width,
          std::int64_t row, std::int64_t col, workspace& space) {
  operand taken;
  taken.ndim = 2;
  taken.rows = r.rows;
  taken.cols = r.cols;
  read_tiles(from, {{r.row * from_width + r.col, r.rows, r.cols, r.rows > 1 ? from_width : r.cols}, 0, 0},
             taken, space);
  std::int64_t known = 0;
  for (int i = 0; i < taken.tiles.size(); ++i) {
    const tile& t = taken.tiles[i];
    known += t.rows * t.cols;
    if (t.holds->any) throw refusal("RC7535: the exchange of heads sends zeros that belong to no tensor");
    piece p{{(row + t.row) * width + col + t.col, t.rows, t.cols, t.rows > 1 ? width : t.cols}, *t.holds};
    if (!continue_piece(to, p)) to.pieces.push_back(std::move(p));
  }
  check_written(known, r.rows * r.cols);
}

/// Joins adjacent pieces that are columns of one box.
void join_columns(content& c) {
  for (int i = 0; i < c.pieces.size(); ++i)
    for (int k = 0; k < c.pieces.size(); ++k) {
      piece &a = c.pieces[i], &b = c.pieces[k];
      const bool beside = i != k && a.at.rows == b.at.rows && b.at.offset == a.at.offset + a.at.cols &&
                          a.holds.box.size() == 2 && b.holds.box.size() == 2 &&
                          a.holds.box[0] == b.holds.box[0] && a.holds.box[1].size == b.holds.box[1].size &&
                          holds_same_sum(a.holds, b.holds);
      if (!beside) continue;
      a.holds.box[1].at.append(b.holds.box[1].at);
      a.at.cols += b.at.cols;
      if (a.at.rows == 1) a.at.pitch = a.at.cols;
      c.pieces.erase(k);
      i = -1;
      break;
    }
}

/// A chunk of a member: the index of its first token among the member's tokens of the sequence, its position
/// in the sequence, and its number of tokens.
struct run_of_tokens {
  std::int64_t place, position, count;
};
std::vector<run_of_tokens> tokens_of(std::int64_t member, std::int64_t members, std::int64_t seq) {
  const std::int64_t n = seq / (2 * members);
  return {{0, member * n, n}, {n, (2 * members - 1 - member) * n, n}};
}

}  // namespace

std::vector<content> exchange(const std::vector<const content*>& given, const exchanged& as) {
  const auto members = static_cast<std::int64_t>(given.size());
  const auto is_matrix = [](const tensor_shape& s) { return s.size() == 2 && s[0] > 0 && s[1] > 0; };
  if (!is_matrix(as.from) || !is_matrix(as.to))
    throw refusal("RC7536: the exchange of heads is given tensors that are not matrices");
  const bool to_heads = as.to[0] > as.from[0];
  const std::int64_t tokens = to_heads ? as.from[0] : as.to[0], whole = to_heads ? as.to[0] : as.from[0],
                     width = to_heads ? as.to[1] : as.from[1], all_heads = to_heads ? as.from[1] : as.to[1];
  if (whole != members * tokens || all_heads != members * width)
    throw refusal(
        "RC7537: an exchange of heads over {} members turns {} x {} into {} x {}; expected the number of "
        "members to multiply the rows and divide the columns",
        members, tokens, all_heads, whole, width);
  if (as.seq < 1 || as.seq % (2 * members) || whole % as.seq)
    throw refusal("RC7538: {} tokens are not whole sequences of {} in two chunks for each of {} members",
                  whole, as.seq, members);
  if (whole / as.seq > most_sequences)
    throw refusal("RC7539: the exchange of heads has {} sequences; expected {} at most", whole / as.seq,
                  most_sequences);
  const std::int64_t each = as.seq / members;
  workspace space;
  std::vector<content> made;
  for (std::int64_t m = 0; m < members; ++m) {
    content& to = made.emplace_back(content{given[0]->bytes, given[0]->type, {}});
    const auto visit = [&](std::int64_t giver, std::int64_t sequence, const run_of_tokens& t) {
      const content& from = *given[static_cast<std::size_t>(giver)];
      const std::int64_t in_whole = sequence * as.seq + t.position, in_part = sequence * each + t.place;
      if (to_heads)
        move(from, all_heads, {in_part, m * width, t.count, width}, to, width, in_whole, 0, space);
      else move(from, width, {in_whole, 0, t.count, width}, to, all_heads, in_part, giver * width, space);
    };
    if (to_heads) {  // in the order of the new rows, so that pieces of one tensor join
      for (std::int64_t sequence = 0; sequence < whole / as.seq; ++sequence)
        for (std::int64_t chunk = 0; chunk < 2 * members; ++chunk) {
          const std::int64_t giver = chunk < members ? chunk : 2 * members - 1 - chunk;
          visit(giver, sequence, tokens_of(giver, members, as.seq)[chunk < members ? 0 : 1]);
        }
    } else {
      for (std::int64_t giver = 0; giver < members; ++giver)
        for (std::int64_t sequence = 0; sequence < whole / as.seq; ++sequence)
          for (const run_of_tokens& t : tokens_of(m, members, as.seq)) visit(giver, sequence, t);
      join_columns(to);
    }
  }
  return made;
}

}  // namespace rankc::codegen::algebra
