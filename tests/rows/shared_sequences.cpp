// SPDX-License-Identifier: Apache-2.0
// Rows on chunks of sequences, against the same rows on whole sequences.
#include "laws.hpp"

#include <doctest/doctest.h>

#include <array>
#include <string>

namespace rankc::test::rows {

namespace {

/// The tokens of a rank, in its order: from each sequence, chunk `rank` from the front and chunk `rank` from
/// the back.
std::vector<int> tokens_of(int rank, int ranks, int rows, int seq) {
  std::vector<int> all;
  for (int row = 0; row < rows; ++row)
    for (const int chunk : {rank, 2 * ranks - 1 - rank})
      for (int n = chunk * seq / (2 * ranks); n < (chunk + 1) * seq / (2 * ranks); ++n)
        all.push_back(row * seq + n);
  return all;
}

/// The first axis of a port: 't' for queries' tokens, 'u' for keys'; '\0' for neither.
char tokens_axis(const row& r, std::size_t port) {
  const char of = r.is->ports[port].axes.front().of;
  return of == 't' || of == 'u' ? of : '\0';
}

void check_chunks(machine& on, const row& r, const row& whole, int ranks, int rows, int chunk) {
  const int seq = 2 * ranks * chunk;
  setting all{{{'t', rows * seq},
               {'u', rows * seq},
               {'n', rows * seq},
               {'s', seq},
               {'w', 5},
               {'h', 4},
               {'k', 2},
               {'d', 6},
               {'v', 1}},
              0,
              0,
              0};
  setting own = all;
  own.size['t'] = rows * seq / ranks;
  own.number = ranks;
  const operands given = random_operands(on, whole, all, 31), want = on.run(whole, all, given);
  std::vector<int> gathered;
  for (int rank = 0; rank < ranks; ++rank)
    for (const int token : tokens_of(rank, ranks, rows, seq)) gathered.push_back(token);
  operands got;
  for (std::size_t p = 0; p < r.results(); ++p) got.emplace_back(want[p].size(), 0.0);
  for (int rank = 0; rank < ranks; ++rank) {
    const std::vector<int> tokens = tokens_of(rank, ranks, rows, seq);
    const auto of_port = [&](std::size_t p) { return tokens_axis(r, p) == 't' ? tokens : gathered; };
    own.first = rank * static_cast<int>(tokens.size());
    operands part = given;
    for (std::size_t p = 0; p < r.ports.size(); ++p) {
      if (!tokens_axis(r, p)) continue;
      const std::size_t width = given[p].size() / static_cast<std::size_t>(rows * seq);
      part[p].clear();
      for (const int token : of_port(p))
        part[p].insert(part[p].end(), given[p].begin() + static_cast<std::ptrdiff_t>(token * width),
                       given[p].begin() + static_cast<std::ptrdiff_t>((token + 1) * width));
    }
    const operands made = on.run(r, own, part);
    for (std::size_t p = 0; p < r.results(); ++p) {
      if (!tokens_axis(r, p)) {
        for (std::size_t i = 0; i < got[p].size(); ++i) got[p][i] += made[p][i];
        continue;
      }
      const std::size_t width = want[p].size() / static_cast<std::size_t>(rows * seq);
      const std::vector<int> order = of_port(p);
      for (std::size_t i = 0; i < made[p].size(); ++i)
        got[p][static_cast<std::size_t>(order[i / width]) * width + i % width] += made[p][i];
    }
  }
  for (std::size_t p = 0; p < r.results(); ++p) {
    INFO(on.name() << " " << r.op->name << " on " << ranks << " ranks, chunks of " << chunk << ": "
                   << r.is->ports[p].name);
    CHECK(deviation(got[p], want[p]) <=
          on.tolerance() * (p < r.results() && tokens_axis(r, p) == 't' ? 1 : ranks));
  }
}

}  // namespace

void check_chunks(machine& on, const row& r) {
  std::string of_whole(r.op->name);
  of_whole.erase(of_whole.find("chunk_"), std::string_view("chunk_").size());
  const row& whole = find_row(of_whole);
  for (const auto& [ranks, rows, chunk] : {std::array{2, 1, 1}, {2, 3, 5}, {3, 2, 4}, {4, 1, 7}, {2, 1, 150}})
    check_chunks(on, r, whole, ranks, rows, chunk);
}

}  // namespace rankc::test::rows
