// SPDX-License-Identifier: Apache-2.0
// The fields, sets of elements, partial sums, and the contents of buffers.
#include <doctest/doctest.h>

#include <equivalence/collectives.hpp>
#include <equivalence/contents.hpp>

#include "../../said.hpp"

namespace algebra_test {

using namespace rankc::codegen::algebra;

namespace {

constexpr term t{3, 5}, u{7, 11};
constexpr word seeds[]{0, 1, 2, 3, 1u << 31, ~word{0}};

/// Elements [begin, end) of the terms that t sums over an axis of 100.
summand part_of(std::int64_t begin, std::int64_t end, term of = t) {
  summand s{of, {}};
  s.over.push_back({{7, 7}, 't', joining::sum, 100, runs(begin, end)});
  return s;
}
holding held(const summand& s) {
  holding h;
  h.box.push_back({runs(0, 4), 4});
  h.sum.push_back(s);
  return h;
}

/// A matrix of `columns` columns, which are elements [first, first + columns) of an axis of 100.
piece matrix(std::int64_t offset, std::int64_t rows, std::int64_t columns, std::int64_t pitch,
             std::int64_t first) {
  piece p{{offset, rows, columns, pitch}, {}};
  p.holds.box.push_back({runs(0, rows), rows});
  p.holds.box.push_back({runs(first, first + columns), 100});
  p.holds.sum.push_back({t, {}});
  return p;
}

/// A part of a softmax over eight positions; all of them are the whole.
holding part_over(const runs& keys) {
  summand s{t, {}};
  if (!keys.is(0, 8)) s.over.push_back({{9, 9}, 'p', joining::softmax, 8, keys});
  return held(s);
}
holding merged(const runs& keys, const runs& more) {
  holding to = part_over(keys);
  merge_parts(to, part_over(keys), part_over(more), part_over(more));
  return to;
}

}  // namespace

TEST_CASE("numbers are elements of the fields that are drawn") {
  for (const word seed : seeds) {
    const fields drawn_of = draw_fields(seed);
    for (const field& f : {drawn_of.a, drawn_of.b}) {
      CHECK(f.number(1) == 1);
      CHECK(f.number(-1) == f.prime - 1);
      CHECK(f.number(0) == 0);
      CHECK(f.product(f.number(0.5), f.number(2)) == 1);
      CHECK(f.product(f.number(0.1), f.number(10)) != 1);  // the double 0.1 is not a tenth
      CHECK(f.sum(f.number(0.375), f.number(0.25)) == f.number(0.625));
      CHECK(f.difference(f.number(0.25), f.number(0.375)) == f.number(-0.125));
      CHECK(f.product(f.number(1e300), f.number(0x1p-900)) == f.number(1e300 * 0x1p-900));
      CHECK(f.product(f.number(0x1p-1074), f.number(0x1p1000)) == f.number(0x1p-74));
    }
    const drawn scope(drawn_of);
    CHECK(3 * (t + u) == 3 * u + t + t + t);
    CHECK(t + u - u == t);
  }
}

TEST_CASE("fields are of two primes, and a seed draws the same again") {
  for (const word seed : seeds) {
    const fields x = draw_fields(seed), y = draw_fields(seed);
    CHECK(x.a.prime == y.a.prime);
    CHECK(x.b.seed == y.b.seed);
    CHECK(x.a.prime != x.b.prime);
    CHECK(x.a.seed != x.b.seed);
    for (const field& f : {x.a, x.b}) {
      CHECK((f.prime >> 61) == 1);
      word divisor = 2;
      while (divisor < 5000 && f.prime % divisor != 0) ++divisor;
      CHECK(divisor == 5000);
      // Fermat's little theorem.
      for (const word base : {2, 3, 10, 6700417}) CHECK(f.power(base, f.prime - 1) == 1);
    }
  }
}

TEST_CASE("no power of two that a few doubles have is one") {
  for (const word seed : seeds) {
    const drawn scope(draw_fields(seed));
    term doubled = t + t;
    int k = 1;
    for (; k <= 4096 && doubled != t; ++k) doubled = doubled + doubled;
    CHECK(k == 4097);
    for (const double factor : {0x1p61, 0x1p-61, 0x1p122, 0x1p-976, 0x1p1023, 0x1p-1074})
      CHECK(factor * t != t);
    CHECK(0x1p31 * (0x1p30 * t) != t);
  }
}

TEST_CASE("terms are told apart by row, attributes and operands") {
  const drawn scope(draw_fields(1));
  const auto hashed = [](auto... values) {
    hasher h(hash_of::result);
    (h << ... << values);
    return term(h);
  };
  CHECK(leaf("a", "bc") != leaf("ab", "c"));
  CHECK(hashed(word{2}, word{3}) != hashed(word{3}, word{2}));
  CHECK(hashed(0.0) != hashed(1.0));
  CHECK(hashed(word{1}) != term(hasher(hash_of::squares) << word{1}));
  CHECK(hashed(t) != hashed(t.a, t.a));
}

TEST_CASE("a term of one draw is another in the next, and is not made without a draw") {
  const auto leaf_of = [](word seed) {
    const drawn scope(draw_fields(seed));
    return leaf("weight", "w");
  };
  CHECK(leaf_of(1) == leaf_of(1));
  CHECK(leaf_of(1).a != leaf_of(2).a);
  CHECK(leaf_of(1).b != leaf_of(2).b);
  CHECK_THROWS_AS(leaf("weight", "w"), std::logic_error);
  const drawn outer(draw_fields(1));
  const term before = leaf("weight", "w");
  leaf_of(2);
  CHECK(leaf("weight", "w") == before);
}

TEST_CASE("runs keep an order, or are a set") {
  runs r(4, 8);
  r.append(interval{8, 10});
  CHECK(r.is(4, 10));
  r.append(interval{0, 2});
  CHECK(r.count() == 2);
  CHECK(r.size() == 8);
  CHECK(r.slice(5, 3).count() == 2);  // 9, then 0 and 1
  interval twice;
  REQUIRE(r.sort(twice));
  CHECK(r[0] == interval{0, 2});
  CHECK(r.unite(runs(2, 4), twice));
  CHECK(r.is(0, 10));
  CHECK(!r.unite(runs(9, 12), twice));
  CHECK(twice == interval{9, 10});
  CHECK(r.is(0, 10));
  runs units;
  CHECK(runs(8, 24).to_units(8, units));
  CHECK(units.is(1, 3));
  CHECK(!runs(8, 20).to_units(8, units));
  CHECK(text_of('t', runs(10, 20).gaps(30)) == "tokens 0..9 and 20..29");
}

TEST_CASE("parts of a term unite to the whole of it") {
  const drawn scope(draw_fields(1));
  few<summand, 1> sum;
  add(sum, part_of(0, 30));
  add(sum, part_of(60, 100));
  CHECK(sum.size() == 1);
  CHECK(!sum[0].is_whole());
  add(sum, part_of(30, 60));
  REQUIRE(sum.size() == 1);
  CHECK(sum[0].is_whole());
  add(sum, {u, {}});
  CHECK(sum.size() == 1);
  CHECK(sum[0].of == t + u);
  add(sum, part_of(0, 30));  // the same elements a second time
  CHECK(sum.size() == 2);
  add(sum, part_of(30, 100));
  CHECK(sum.size() == 1);
  CHECK(sum[0].of == t + t + u);
}

TEST_CASE("a sum over two axes is whole by one after the other") {
  few<summand, 1> sum;
  const auto block = [](std::int64_t begin, std::int64_t end, std::int64_t head) {
    summand s = part_of(begin, end);
    s.over.push_back({{8, 8}, 'h', joining::sum, 2, runs(head, head + 1)});
    return s;
  };
  add(sum, block(0, 50, 0));
  add(sum, block(50, 100, 1));  // the head differs, so the blocks are not adjacent
  CHECK(sum.size() == 2);
  add(sum, block(50, 100, 0));
  add(sum, block(0, 50, 1));
  CHECK(sum.size() == 1);
  CHECK(sum[0].is_whole());
}

TEST_CASE("parts of a softmax are merged, and a part without keys changes nothing") {
  const runs none, all(0, 8), front(0, 3), back(3, 8);
  CHECK(merged(front, back).is_whole());
  CHECK(merged(all, none).is_whole());
  CHECK(merged(none, all).is_whole());
  CHECK(merged(front, none).sum[0].over[0].done == front);
  CHECK(merged(none, front).sum[0].over[0].done == front);
  const auto refused = [](const runs& keys, const runs& more) {
    return rankc::test::said_by([&] { merged(keys, more); }).id;
  };
  CHECK(refused(all, front) == 7507);
  CHECK(refused(front, all) == 7507);
  CHECK(refused(all, all) == 7507);
  CHECK(refused(front, front) == 7510);
  CHECK(rankc::test::said_by([&] {  // the log-sum-exps of other keys
          holding to = part_over(none);
          merge_parts(to, part_over(front), part_over(all), part_over(all));
        })
            .id == 7507);
  CHECK(has_keys(part_over(all), front));
  CHECK(has_keys(part_over(front), runs(1, 3)));
  CHECK_FALSE(has_keys(part_over(front), runs(1, 4)));
  CHECK_FALSE(has_keys(part_over(none), front));
}

TEST_CASE("members of a group have no element in common") {
  holding h = held(part_of(0, 30));
  CHECK(rankc::test::said_by([&] { add_of_member(h, held(part_of(20, 40))); }) ==
        rankc::test::said{7500, {"tokens 20..29"}});
  CHECK_THROWS_AS(add_of_member(h, held(part_of(0, 30))), refusal);
  add_of_member(h, held(part_of(30, 100)));
  CHECK(h.is_whole());
  holding other = held(part_of(0, 30));
  other.box[0].at = runs(1, 4);
  CHECK_THROWS_AS(add(h, other), refusal);
}

TEST_CASE("the first two members of a large group stand for all") {
  const auto buffer = [](const summand& s) {
    content c{16, rankc::codegen::element_type::f32, {}};
    c.pieces.push_back({{0, 1, 4, 4}, held(s)});
    return c;
  };
  const content first = buffer(part_of(0, 25)), second = buffer(part_of(25, 50)),
                far = buffer(part_of(50, 75));
  using enum rankc::codegen::collective_kind;
  CHECK(combine(all_reduce, {&first, &second}, 4)[0].pieces[0].holds.is_whole());
  CHECK(!combine(all_reduce, {&first, &second}, 3)[0].pieces[0].holds.is_whole());
  CHECK(!combine(all_reduce, {&first, &far}, 2)[0].pieces[0].holds.is_whole());
  CHECK_THROWS_AS(combine(all_reduce, {&first, &first}, 4), refusal);
  CHECK_THROWS_AS(combine(all_reduce, {&first}, 4), refusal);
}

TEST_CASE("a buffer of columns side by side is read by columns, and as a whole") {
  content c{10 * 8 * 4, rankc::codegen::element_type::f32, {}};
  c.pieces.push_back(matrix(0, 10, 6, 8, 0));
  c.pieces.push_back(matrix(6, 10, 2, 8, 50));
  workspace space;
  const auto tiles_of = [&](const place& at) {
    operand o;
    read_tiles(c, {at, 0, 0}, o, space);
    return o.tiles;
  };
  const few<tile, 2> all = tiles_of({0, 10, 8, 8});
  REQUIRE(all.size() == 2);
  CHECK(all[1].col == 6);
  const few<tile, 2> inner = tiles_of({8 * 2 + 4, 3, 4, 8});  // rows 2..4, columns 4..7
  REQUIRE(inner.size() == 2);
  CHECK(inner[0].holds->box[0].at.is(2, 5));
  CHECK(inner[0].holds->box[1].at.is(4, 6));
  CHECK(inner[1].col == 2);
  CHECK(inner[1].holds->box[1].at.is(50, 52));
  CHECK_THROWS_AS(tiles_of({0, 5, 8, 16}), refusal);  // every other row
  operand zeros;
  holding none;
  none.any = true;
  zeros.tiles.push_back({0, 0, 10, 2, &none});
  write_tiles(c, {{6, 10, 2, 8}, 0, 0}, zeros);
  CHECK(c.pieces.size() == 2);
  CHECK_THROWS_AS(write_tiles(c, {{1, 10, 2, 8}, 0, 0}, zeros), refusal);  // a part of a piece
}

TEST_CASE("zeros that are written over in part stay beside it") {
  content c{12 * 4, rankc::codegen::element_type::f32, {}};
  append_zeros(c, 0, 12);
  operand rows;
  const holding h = matrix(0, 2, 4, 4, 0).holds;
  rows.tiles.push_back({0, 0, 2, 4, &h});
  write_tiles(c, {{0, 2, 4, 4}, 0, 0}, rows);
  REQUIRE(c.pieces.size() == 2);
  const tensor t = tensor_of(c);
  CHECK(t.elements == 8);
  CHECK(t.holds->box[0].at.is(0, 2));
  workspace space;
  operand all;
  all.rows = 3;
  all.cols = 4;
  read_tiles(c, {{0, 3, 4, 4}, 0, 0}, all, space);
  CHECK(all.tiles.size() == 2);
  CHECK_THROWS_AS(read_tiles(c, {{2, 5, 2, 2}, 0, 0}, all, space), refusal);  // in rows of two
}

TEST_CASE("shards in line: those past the end are zeros, and no others") {
  // Rows of a tensor with 5, in a buffer of two rows.
  const auto rows = [](std::int64_t begin, std::int64_t end, term of) {
    content c{2 * 3 * 4, rankc::codegen::element_type::f32, {}};
    if (begin < end) {
      piece p{{0, end - begin, 3, 3}, {}};
      p.holds.box.push_back({runs(begin, end), 5});
      p.holds.box.push_back({runs(0, 3), 3});
      add(p.holds.sum, {of, {}});
      c.pieces.push_back(p);
    }
    append_zeros(c, 3 * (end - begin), 6 - 3 * (end - begin));
    return c;
  };
  const content first = rows(0, 2, t), second = rows(2, 4, t), third = rows(4, 5, t), none = rows(0, 0, t),
                other = rows(2, 4, u);
  using enum rankc::codegen::collective_kind;
  for (const content& all :
       {combine(all_gather, {&first, &second, &third}, 3)[0], combine(all_gather, {&first, &second}, 3)[0]}) {
    const tensor found = tensor_of(all);
    CHECK(found.elements == 15);
    CHECK(found.holds->box[0].is_whole());
    CHECK(all.elements() == 18);
  }
  CHECK_THROWS_AS(combine(all_gather, {&first, &second}, 5),
                  refusal);  // two shards of two rows past the end
  CHECK_THROWS_AS(combine(all_gather, {&first, &other}, 2), refusal);
  CHECK_THROWS_AS(combine(all_gather, {&first, &other}, 3), refusal);
  CHECK_THROWS_AS(combine(all_gather, {&first, &none}, 3),
                  refusal);  // the first shard does not end at the tensor's end
  CHECK(tensor_of(combine(all_gather, {&third, &none}, 3)[0]).elements == 3);
  const content dealt =
      combine(reduce_scatter, {&third, &third}, 2)[1];  // the second member's three elements, which are zeros
  CHECK(dealt.pieces[0].holds.any);
}

}  // namespace algebra_test
