// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <rankc/mesh/axes.hpp>
#include <rankc/mesh/tile.hpp>

#include <random>
#include <vector>

namespace tile_test {

using namespace rankc;

namespace {

/// What may be named in a tile.
template <auto... Pieces>
concept tiles = requires { tile::tiled<Pieces...>; };
static_assert(tiles<2, 3>);
static_assert(!tiles<axis::tp, 3> && !tiles<2, axis::dp_shard>);
template <class T>
concept rows_into = requires(T t) { tile::row_wise(t); };
template <class T>
concept columns_into = requires(T t) { tile::column_wise(t); };
static_assert(rows_into<int> && columns_into<int>);
static_assert(!rows_into<axis> && !columns_into<axis> && !rows_into<parallel_dims> && !columns_into<double>);
// Which piece is to be said.
template <class... T>
concept resolves = requires(T... t) { tile::resolve(t...); };
static_assert(resolves<tile::layout, tile::pair, tile::pair> && !resolves<tile::layout, tile::pair>);

static_assert(tile::resolve(tile::tiled<2, 3>, {4, 9}, {1, 2}) == tile::piece{{2, 6}, {2, 3}, {2, 3}});
static_assert(tile::resolve(tile::row_wise(4, tile::uneven::padded), {6, 5}, {3, 0}) ==
              tile::piece{{6, 0}, {0, 5}, {2, 5}});
static_assert(tile::resolve(tile::replicate, {6, 5}, {0, 0}) == tile::piece{{0, 0}, {6, 5}, {6, 5}});

/// How many pieces have each element; every element of a piece comes back from the matrix.
std::vector<int> count_holders(const tile::layout& l, const tile::pair& shape) {
  std::vector<int> holders(static_cast<std::size_t>(shape[0] * shape[1]), 0);
  for (long long r = 0; r < l.pieces[0]; ++r)
    for (long long c = 0; c < l.pieces[1]; ++c) {
      const tile::piece p = tile::resolve(l, shape, {r, c});
      for (long long i = 0; i < p.extent[0]; ++i)
        for (long long j = 0; j < p.extent[1]; ++j) {
          const tile::pair at = tile::lift(p, {i, j});
          REQUIRE(tile::lower(p, at) == tile::pair{i, j});
          ++holders.at(static_cast<std::size_t>(at[0] * shape[1] + at[1]));
        }
    }
  return holders;
}

}  // namespace

TEST_CASE("the pieces of a matrix are disjoint and cover it, of the same room") {
  std::mt19937 random(7);
  const auto draw = [&](int from, int to) {
    return std::uniform_int_distribution<long long>(from, to)(random);
  };
  int divided = 0, padded = 0, empty = 0;
  for (int n = 0; n < 2000; ++n) {
    CAPTURE(n);
    const tile::pair shape{draw(1, 12), draw(1, 12)};
    tile::layout l;
    if (n % 3 == 0) l = tile::row_wise(draw(1, 5));
    else if (n % 3 == 1) l = tile::column_wise(draw(1, 5));
    else l.pieces = {draw(1, 5), draw(1, 5)};
    const bool divides = shape[0] % l.pieces[0] == 0 && shape[1] % l.pieces[1] == 0;
    if (!divides) {
      CHECK_THROWS_AS(tile::resolve(l, shape, {0, 0}), std::invalid_argument);
      l.uneven = tile::uneven::padded;
    }
    CHECK(count_holders(l, shape) == std::vector<int>(static_cast<std::size_t>(shape[0] * shape[1]), 1));
    const tile::piece last = tile::resolve(l, shape, {l.pieces[0] - 1, l.pieces[1] - 1});
    for (const std::size_t d : {0u, 1u}) {
      CHECK(last.room[d] * l.pieces[d] >= shape[d]);
      CHECK((last.room[d] - 1) * l.pieces[d] < shape[d]);
    }
    ++(divides ? divided : padded);
    empty += last.extent[0] == 0 || last.extent[1] == 0;
  }
  CHECK(divided > 300);
  CHECK(padded > 300);
  CHECK(empty > 50);
}

TEST_CASE("what does not divide is refused with what to take, and so is a piece that is none") {
  CHECK_THROWS_WITH_AS(tile::resolve(tile::row_wise(4), {6, 5}, {0, 0}),
                       "rows=6 do not divide into 4 pieces: take a divisor, or uneven::padded",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(tile::resolve(tile::column_wise(2), {6, 5}, {0, 0}),
                       "columns=5 do not divide into 2 pieces: take a divisor, or uneven::padded",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(tile::resolve(tile::row_wise(3), {6, 5}, {3, 0}),
                       "piece 3 of 3; pieces are counted from 0", std::invalid_argument);
}

}  // namespace tile_test
