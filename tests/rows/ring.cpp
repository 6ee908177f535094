// SPDX-License-Identifier: Apache-2.0
// Attention in parts around a ring, against attention over whole sequences: the parts of each rank, merged in
// the order of steps, and the sums of the gradients of all parts.
#include "laws.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

namespace rankc::test::rows {

namespace {

/// Sequences sharded over a ring: a rank's tokens, in its order.
struct sharing {
  int ranks, rows, seq;
  int tokens() const { return rows * seq; }
  std::vector<int> of(int rank) const {
    std::vector<int> all;
    for (int row = 0; row < rows; ++row)
      for (const int chunk : {rank, 2 * ranks - 1 - rank})
        for (int n = chunk * seq / (2 * ranks); n < (chunk + 1) * seq / (2 * ranks); ++n)
          all.push_back(row * seq + n);
    return all;
  }
  values take(const values& from, int rank) const {
    const std::size_t width = from.size() / static_cast<std::size_t>(tokens());
    values some;
    for (const int token : of(rank)) {
      const auto begin = from.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(token) * width);
      some.insert(some.end(), begin, begin + static_cast<std::ptrdiff_t>(width));
    }
    return some;
  }
  void add(values& to, int rank, const values& some) const {
    const std::size_t width = to.size() / static_cast<std::size_t>(tokens());
    const std::vector<int> mine = of(rank);
    for (std::size_t i = 0; i < some.size(); ++i)
      to[static_cast<std::size_t>(mine[i / width]) * width + i % width] += some[i];
  }
};

const row& ring_row(std::string_view name) {
  for (const row& r : ring_rows())
    if (r.op->name == name) return r;
  throw std::logic_error(std::string(name) + " is no row of rings");
}

/// Check the rows with this prefix: with documents, whose starts are the last operand, or without.
void check_ring(machine& on, const sharing& by, const std::string& which) {
  const row &attention = find_row(which + "attention"), &gradient = find_row(which + "attention_grad"),
            &part = ring_row(which + "ring_attention"), &merge = ring_row("merge_attention"),
            &part_gradient = ring_row(which + "ring_attention_grad");
  const setting all{{{'t', by.tokens()},
                     {'u', by.tokens()},
                     {'n', by.tokens()},
                     {'s', by.seq},
                     {'w', 5},
                     {'h', 4},
                     {'k', 2},
                     {'d', 6},
                     {'v', 1}},
                    0,
                    0,
                    0};
  operands given = random_operands(on, attention, all, 31);  // o, lse, q, k, v, and starts with documents
  const operands starts(given.begin() + 5, given.end());
  const auto with_starts = [&](operands o) {
    o.insert(o.end(), starts.begin(), starts.end());
    return o;
  };
  const operands want = on.run(attention, all, given);
  const values &q = given[2], &k = given[3], &v = given[4];
  operands back = random_operands(on, gradient, all, 32);  // dq, dk, dv, do, q, k, v, o, lse
  back[4] = q;
  back[5] = k;
  back[6] = v;
  back[7] = want[0];
  back[8] = want[1];
  std::copy(starts.begin(), starts.end(), back.begin() + 9);
  const operands want_back = on.run(gradient, all, back);
  operands got{values(want[0].size()), values(want[1].size())},
      got_back{values(want_back[0].size()), values(want_back[1].size()), values(want_back[2].size())};
  setting own = all;
  own.ring = by.ranks;
  own.size['t'] = own.size['u'] = by.tokens() / by.ranks;
  for (int rank = 0; rank < by.ranks; ++rank) {
    own.first = rank * own.size['t'];
    operands whole;
    for (int step = 0; step < by.ranks; ++step) {
      own.number = step;
      const int other = (rank - step + by.ranks) % by.ranks;
      const auto mine = [&](const values& x) { return by.take(x, rank); };
      const auto theirs = [&](const values& x) { return by.take(x, other); };
      const operands made =
          on.run(part, own, with_starts({mine(given[0]), mine(given[1]), mine(q), theirs(k), theirs(v)}));
      whole =
          step == 0 ? made : on.run(merge, own, {whole[0], whole[1], whole[0], whole[1], made[0], made[1]});
      const operands some =
          on.run(part_gradient, own,
                 with_starts({mine(back[0]), theirs(back[1]), theirs(back[2]), mine(back[3]), mine(q),
                              theirs(k), theirs(v), mine(want[0]), mine(want[1])}));
      by.add(got_back[0], rank, some[0]);
      by.add(got_back[1], other, some[1]);
      by.add(got_back[2], other, some[2]);
    }
    by.add(got[0], rank, whole[0]);
    by.add(got[1], rank, whole[1]);
  }
  INFO(on.name() << " " << which << ", " << by.ranks << " ranks, " << by.rows << " sequences of " << by.seq);
  for (std::size_t p = 0; p < 2; ++p) CHECK(deviation(got[p], want[p]) <= on.tolerance() * by.ranks);
  for (std::size_t p = 0; p < 3; ++p)
    CHECK(deviation(got_back[p], want_back[p]) <= on.tolerance() * by.ranks);
}

}  // namespace

void check_ring(machine& on) {
  for (const auto& [ranks, rows, chunk] : {std::array{2, 1, 1}, {2, 3, 5}, {3, 2, 4}, {4, 1, 7}, {2, 1, 150}})
    for (const char* which : {"", "document_"}) check_ring(on, {ranks, rows, 2 * ranks * chunk}, which);
}

}  // namespace rankc::test::rows
