// SPDX-License-Identifier: Apache-2.0
// The field, sets of elements, sums of parts and what buffers hold.
#include <doctest/doctest.h>

#include <equivalence/collectives.hpp>
#include <equivalence/contents.hpp>

#include "../said.hpp"

namespace algebra_test {

using namespace rankc::codegen::algebra;

namespace {

const term t = leaf("test", "t"), u = leaf("test", "u");

/// Elements [begin, end) of the terms that t sums over an axis of 100.
summand part_of(std::int64_t begin, std::int64_t end, term of = t) {
  summand s{of, {}};
  s.over.push_back({7, 't', joining::sum, 100, runs(begin, end)});
  return s;
}
holding held(const summand& s) {
  holding h;
  h.box.push_back({runs(0, 4), 4});
  h.sum.push_back(s);
  return h;
}

/// A matrix of `columns` columns that are elements [first, first + columns) of an axis of 100.
piece matrix(std::int64_t offset, std::int64_t rows, std::int64_t columns, std::int64_t pitch,
             std::int64_t first) {
  piece p{{offset, rows, columns, pitch}, {}};
  p.holds.box.push_back({runs(0, rows), rows});
  p.holds.box.push_back({runs(first, first + columns), 100});
  p.holds.sum.push_back({t, {}});
  return p;
}

}  // namespace

TEST_CASE("numbers are elements of the field") {
  CHECK(in_field(1) == 1);
  CHECK(in_field(-1) == prime - 1);
  CHECK(in_field(0) == 0);
  CHECK(field_product(in_field(0.5), in_field(2)) == 1);
  CHECK(field_product(in_field(0.1), in_field(10)) != 1);  // 0.1 is no tenth
  CHECK(reduced(in_field(0.375) + in_field(0.25)) == in_field(0.625));
  CHECK(field_product(in_field(1e300), in_field(0x1p-900)) == in_field(1e300 * 0x1p-900));
  CHECK(in_field(3) * (t + u) == in_field(3) * u + t + t + t);
}

TEST_CASE("terms are told apart by row, attributes and operands") {
  CHECK(leaf("a", "bc") != leaf("ab", "c"));
  CHECK(term(hasher(1) << word{2} << word{3}) != term(hasher(1) << word{3} << word{2}));
  CHECK(term(hasher(1) << 0.0) != term(hasher(1) << 1.0));
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
  add(sum, part_of(0, 30));  // a second time
  CHECK(sum.size() == 2);
  add(sum, part_of(30, 100));
  CHECK(sum.size() == 1);
  CHECK(sum[0].of == t + t + u);
}

TEST_CASE("a sum over two axes is whole by one after the other") {
  few<summand, 1> sum;
  const auto block = [](std::int64_t begin, std::int64_t end, std::int64_t head) {
    summand s = part_of(begin, end);
    s.over.push_back({8, 'h', joining::sum, 2, runs(head, head + 1)});
    return s;
  };
  add(sum, block(0, 50, 0));
  add(sum, block(50, 100, 1));  // not beside it
  CHECK(sum.size() == 2);
  add(sum, block(50, 100, 0));
  add(sum, block(0, 50, 1));
  CHECK(sum.size() == 1);
  CHECK(sum[0].is_whole());
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
  const auto rows = [](std::int64_t begin, std::int64_t end, term of) {  // of 5, in two rows of a buffer
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
                  refusal);  // two shards past the end, of two rows
  CHECK_THROWS_AS(combine(all_gather, {&first, &other}, 2), refusal);
  CHECK_THROWS_AS(combine(all_gather, {&first, &other}, 3), refusal);
  CHECK_THROWS_AS(combine(all_gather, {&first, &none}, 3),
                  refusal);  // the first does not end where the tensor does
  CHECK(tensor_of(combine(all_gather, {&third, &none}, 3)[0]).elements == 3);
  const content dealt =
      combine(reduce_scatter, {&third, &third}, 2)[1];  // three elements each: zeros, of the second
  CHECK(dealt.pieces[0].holds.any);
}

}  // namespace algebra_test
