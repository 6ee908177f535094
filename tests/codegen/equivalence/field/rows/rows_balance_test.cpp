// SPDX-License-Identifier: Apache-2.0
// Sums over routers, and their losses, over the field: partial sums add up, groups are separate, and
// gradients are transposes.
#include <doctest/doctest.h>

#include "drawn_rows.hpp"

#include <algorithm>

namespace rows_balance_test {

using namespace field;

namespace {

constexpr std::int64_t tokens = 12, expert_count = 4, layers = 3, picks = 2, of_layer = 3 * expert_count,
                       of_layers = layers * of_layer;

call run_row(std::string_view name, std::initializer_list<given_operand> given,
             std::initializer_list<std::pair<std::string_view, extent>> made, double number = picks) {
  return field::run_row(name, given, made, number);
}
matrix chosen_of(const matrix& logits) {
  return run_row("softmax_top", {{"logits", &logits}},
                 {{"weights", {logits.is.rows, picks}}, {"chosen", {logits.is.rows, picks}}})
      .result("chosen");
}
matrix summed_up(std::string_view row, const matrix& logits, std::int64_t groups) {
  const matrix chosen = chosen_of(logits);
  return run_row(row, {{"logits", &logits}, {"chosen", &chosen}}, {{"own", {groups, of_layer, expert_count}}})
      .result("own");
}
matrix slopes(std::string_view row, const matrix& logits, const matrix& down) {
  return run_row(std::string(row) + "_grad", {{"down", &down}, {"logits", &logits}}, {}).result("dlogits");
}

const matrix logits = drawn({tokens, expert_count}, "logits");

}  // namespace

TEST_CASE(
    "sums of routers: of parts they add up, of groups each is its own, and choices are as many as picks") {
  for (std::string_view row : {"softmax_statistics", "sigmoid_statistics"}) {
    const matrix all = summed_up(row, logits, 1), groups = summed_up(row, logits, 3),
                 down = drawn({3, of_layer}, "down");
    CHECK(sum(summed_up(row, rows_of(logits, 0, 5), 1), summed_up(row, rows_of(logits, 5, 7), 1)).of ==
          all.of);
    const matrix dlogits = slopes(row, logits, down);
    for (std::int64_t g = 0; g < 3; ++g) {
      const matrix part = rows_of(logits, g * 4, 4);
      CHECK(rows_of(groups, g, 1).of == summed_up(row, part, 1).of);
      CHECK(rows_of(dlogits, g * 4, 4).of == slopes(row, part, rows_of(down, g, 1)).of);
    }
    element choices = 0;
    for (std::int64_t e = 0; e < expert_count; ++e) choices += all.of[static_cast<std::size_t>(e)];
    CHECK(choices == tokens * picks);
    CHECK(std::count(all.of.end() - (expert_count - 1), all.of.end(), 0) ==
          expert_count - 1);  // the squares are a single number
    CHECK_THROWS_AS(summed_up(row, logits, 5), malformed);
  }
  CHECK(summed_up("softmax_statistics", logits, 1).of != summed_up("sigmoid_statistics", logits, 1).of);
}

TEST_CASE("choices that are summed up are those given, none of another expert") {
  const std::vector<element> chosen = chosen_of(logits).of;
  for (element e = 0; e < expert_count; ++e)
    CHECK(summed_up("softmax_statistics", logits, 1).of[e] ==
          static_cast<element>(std::count(chosen.begin(), chosen.end(), e)));
}

TEST_CASE("gradients of sums are linear, and of each score and the squares, not of choices") {
  for (std::string_view row : {"softmax_statistics", "sigmoid_statistics"}) {
    const matrix a = drawn({1, of_layer}, "a"), b = drawn({1, of_layer}, "b");
    CHECK(slopes(row, logits, sum(a, b)).of == sum(slopes(row, logits, a), slopes(row, logits, b)).of);
    for (std::int64_t i = 0; i < of_layer; ++i) {
      matrix moved = a;
      moved.of[static_cast<std::size_t>(i)] = add(moved.of[static_cast<std::size_t>(i)], 1);
      CHECK((slopes(row, logits, moved).of != slopes(row, logits, a).of) ==
            (i >= expert_count && i <= 2 * expert_count));
    }
  }
}

TEST_CASE("sums of a layer are put behind the others, and gradients are taken apart so") {
  const matrix s = drawn({2, of_layers}, "s"), own = drawn({2, of_layer}, "own"),
               dy = drawn({2, of_layers}, "dy");
  const matrix y = run_row("push", {{"s", &s}, {"own", &own}}, {}).result("y");
  const call back = run_row("push_grad", {{"dy", &dy}}, {{"down", own.is}});
  CHECK(inner(dy, y) == add(inner(back.result("ds"), s), inner(back.result("down"), own)));
  matrix all(extent{1, of_layers});
  for (std::string_view name : {"0", "1", "2"}) {
    const matrix of = drawn({1, of_layer}, name);
    all = run_row("push", {{"s", &all}, {"own", &of}}, {}).result("y");
  }
  for (std::int64_t l = 0; l < layers; ++l)
    CHECK(std::equal(all.of.begin() + l * of_layer, all.of.begin() + (l + 1) * of_layer,
                     drawn({1, of_layer}, std::to_string(l)).of.begin()));
}

TEST_CASE(
    "losses of routers are linear in scores or squares, by choices: of all layers, of each, or as many as a "
    "layer's") {
  constexpr double scale = 0.5;
  const matrix whole = drawn({2, of_layers, expert_count}, "whole"),
               s = drawn({2, of_layers, expert_count}, "sums");
  const auto at = [](const matrix& m, std::int64_t g, std::int64_t l, std::int64_t kind, std::int64_t e) {
    return m.row(g)[l * of_layer + kind * expert_count + e];
  };
  element wanted[4]{};  // both losses together
  for (std::int64_t g = 0; g < 2; ++g)
    for (std::int64_t l = 0; l < layers; ++l) {
      element choices = 0;
      for (std::int64_t e = 0; e < expert_count; ++e) {
        choices = add(choices, at(whole, g, l, 0, e));
        wanted[1] = add(wanted[1], multiply(at(whole, g, l, 0, e), at(s, g, l, 1, e)));
        for (std::int64_t other = 0; other < layers; ++other)
          wanted[0] = add(wanted[0], multiply(at(whole, g, other, 0, e), at(s, g, l, 1, e)));
      }
      wanted[2] = add(wanted[2], multiply(inverse(choices), at(s, g, l, 2, 0)));
      wanted[3] = add(wanted[3], multiply(at(whole, g, l, 2, 1), at(s, g, l, 2, 0)));
    }
  int next = 0;
  for (const char* row : {"balance_loss", "layer_balance_loss", "z_loss", "overflow_loss"}) {
    CAPTURE(row);
    const element loss = run_row(row, {{"whole", &whole}, {"s", &s}}, {}, scale).result("loss").of[0];
    CHECK(multiply(2, loss) == wanted[next++]);
    const matrix ds = run_row(std::string(row) + "_grad", {{"whole", &whole}}, {}, scale).result("ds");
    CHECK(inner(ds, s) == loss);
  }
}

}  // namespace rows_balance_test
