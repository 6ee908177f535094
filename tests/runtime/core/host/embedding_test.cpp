// SPDX-License-Identifier: Apache-2.0
// Token tables, learned positions and rotary positions against loops. All are linear in the table or in x, so
// their gradients are checked by differences that are exact up to rounding.
#include "workspace.hpp"

namespace embedding_test {

using namespace rankc::test;
namespace host = rankc::host;

namespace {

constexpr int tokens = 11, width = 6;

values embedding_reference(const ids& id, const values& table, int rows, int first) {
  values y(tokens * width);
  for (int n = 0; n < tokens; ++n)
    for (int c = 0; c < width; ++c)
      if (id[n] >= first && id[n] < first + rows) y[n * width + c] = table[(id[n] - first) * width + c];
  return y;
}

constexpr int seq = 4, first_position = 7;  // token positions are 3, 0, 1, 2, ...

values position_reference(const values& x, const values& table) {
  values y = x;
  for (int n = 0; n < tokens; ++n)
    for (int c = 0; c < width; ++c) y[n * width + c] += table[(first_position + n) % seq * width + c];
  return y;
}

constexpr int heads = 3, dim = 6, rope_tokens = 8;

values angles() {
  values table(seq * dim);
  for (int p = 0; p < seq; ++p)
    for (int j = 0; j < dim / 2; ++j) {
      table[p * dim / 2 + j] = std::cos(p * std::pow(100.0, -2.0 * j / dim));
      table[seq * dim / 2 + p * dim / 2 + j] = std::sin(p * std::pow(100.0, -2.0 * j / dim));
    }
  return table;
}

values rope_reference(const values& x) {
  values y(x.size());
  for (int n = 0; n < rope_tokens; ++n)
    for (int h = 0; h < heads; ++h)
      for (int j = 0; j < dim / 2; ++j) {
        const double angle = n % seq * std::pow(100.0, -2.0 * j / dim);
        const int a = (n * heads + h) * dim + j, b = a + dim / 2;
        y[a] = x[a] * std::cos(angle) - x[b] * std::sin(angle);
        y[b] = x[b] * std::cos(angle) + x[a] * std::sin(angle);
      }
  return y;
}

}  // namespace

TEST_CASE_TEMPLATE("a part of an embedding table gives its own rows and zeros", T, float, double) {
  workspace<T> space;
  constexpr int rows = 5;
  const ids id = random_ids(tokens, 15, 7);
  const values table = random_values(rows * width, 1);
  const at in_id = space.put(id), in_table = space.put(table);
  for (const int first : {0, 5, 10}) {
    const at y = space.room(tokens * width);
    host::embedding<T>(space.lane(), y, in_id, in_table, tokens, rows, width, first);
    CHECK(space.get(y, tokens * width) == embedding_reference(id, table, rows, first));
  }
}

TEST_CASE("the embedding gradient collects each row's tokens, overwritten or added") {
  constexpr int rows = 5;
  ids id = random_ids(tokens, 15, 7);
  id[0] = 4;
  id[1] = 5;
  id[2] = 9;
  id[3] = 10;  // both sides of the borders between parts
  const values table = random_values(rows * width, 1), dy = random_values(tokens * width, 2);
  const values before = random_values(rows * width, 3);
  for (const int first : {0, 5, 10}) {
    workspace<double> space;
    const at in_id = space.put(id), in_dy = space.put(dy);
    const values row_behind(width, 7);  // belongs to the next rank's part, and must not change
    values with_row = table, before_with_row = before;
    for (values* v : {&with_row, &before_with_row}) v->insert(v->end(), row_behind.begin(), row_behind.end());
    const at dtable = space.put(with_row), dtable_sum = space.put(before_with_row);
    host::embedding_grad<double>(space.lane(), dtable, in_dy, in_id, tokens, rows, width, first, false);
    host::embedding_grad<double>(space.lane(), dtable_sum, in_dy, in_id, tokens, rows, width, first, true);
    const auto of_table = [&](const values& v) { return embedding_reference(id, v, rows, first); };
    check_near(space.get(dtable, table.size()), derivative(of_table, table, dy), difference_tolerance);
    check_near(space.get(dtable_sum, table.size()), sum(before, space.get(dtable, table.size())), 1e-14);
    for (const at where : {dtable, dtable_sum}) {
      const values got = space.get(where, with_row.size());
      CHECK(values(got.end() - width, got.end()) == row_behind);
    }
  }
}

TEST_CASE_TEMPLATE("learned positions start where this rank's tokens start", T, float, double) {
  workspace<T> space;
  const values x = random_values(tokens * width, 1), table = random_values(seq * width, 2);
  const at in_x = space.put(x), in_table = space.put(table), y = space.room(x.size());
  host::position<T>(space.lane(), y, in_x, in_table, tokens, width, seq, first_position);
  check_near(space.get(y, x.size()), position_reference(x, table), tolerance<T>);
  host::position<T>(space.lane(), in_x, in_x, in_table, tokens, width, seq, first_position);
  CHECK(space.get(in_x, x.size()) == space.get(y, x.size()));
}

TEST_CASE("the gradient of learned positions, overwritten or added; positions without tokens get 0") {
  workspace<double> space;
  const values x = random_values(tokens * width, 1), table = random_values(seq * width, 2);
  const values dy = random_values(x.size(), 3), before = random_values(table.size(), 4);
  const at in_dy = space.put(dy), dtable = space.room(table.size()), dtable_sum = space.put(before);
  host::position_grad<double>(space.lane(), dtable, in_dy, tokens, width, seq, first_position, false);
  host::position_grad<double>(space.lane(), dtable_sum, in_dy, tokens, width, seq, first_position, true);
  const auto of_table = [&](const values& v) { return position_reference(x, v); };
  check_near(space.get(dtable, table.size()), derivative(of_table, table, dy), difference_tolerance);
  check_near(space.get(dtable_sum, table.size()), sum(before, space.get(dtable, table.size())), 1e-14);

  host::position_grad<double>(space.lane(), dtable, in_dy, 2, width, seq, first_position, false);
  values want(table.size());
  for (int c = 0; c < width; ++c) {
    want[3 * width + c] = dy[c];
    want[c] = dy[width + c];
  }
  CHECK(space.get(dtable, table.size()) == want);
}

TEST_CASE_TEMPLATE("rotary positions turn pairs half a head apart; the gradient turns back", T, float,
                   double) {
  workspace<T> space;
  const values x = random_values(rope_tokens * heads * dim, 1), dy = random_values(x.size(), 2);
  const at in_x = space.put(x), in_dy = space.put(dy), table = space.put(angles());
  const at y = space.room(x.size()), dx = space.room(x.size());
  host::rope<T>(space.lane(), y, in_x, table, rope_tokens, heads, dim, seq);
  host::rope_grad<T>(space.lane(), dx, in_dy, table, rope_tokens, heads, dim, seq);
  check_near(space.get(y, x.size()), rope_reference(x), tolerance<T>);
  check_near(space.get(dx, x.size()), derivative(rope_reference, x, dy),
             sizeof(T) == 8 ? difference_tolerance : tolerance<T>);
  host::rope<T>(space.lane(), in_x, in_x, table, rope_tokens, heads, dim, seq);
  host::rope_grad<T>(space.lane(), in_dy, in_dy, table, rope_tokens, heads, dim, seq);
  CHECK(space.get(in_x, x.size()) == space.get(y, x.size()));
  CHECK(space.get(in_dy, x.size()) == space.get(dx, x.size()));
}

}  // namespace embedding_test
