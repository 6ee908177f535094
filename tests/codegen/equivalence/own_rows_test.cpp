// SPDX-License-Identifier: Apache-2.0
// Programs with a user's own ops are compared with the model like others: the kernels are trusted to do what
// the op_rows declare, and everything else is proven.
#include <doctest/doctest.h>

#include <odd/plans.hpp>
#include <rankc/codegen/certificate.hpp>
#include <rankc/codegen/verify.hpp>

#include <algorithm>
#include <functional>
#include <string>

#include "refused.hpp"

namespace own_rows_test {

using namespace equivalence_tests;

namespace {

const subject& silu() {
  static const subject s(find_plan(odd::plans(), "own_op", "tp2"), target::host);
  return s;
}
const subject& penalties() {
  static const subject s(find_plan(odd::plans(), "penalties", "pp3"), target::host);
  return s;
}

void swap_reads(op& o, const std::string& a, const std::string& b) {
  std::swap(subject::read_of(o, a), subject::read_of(o, b));
}

/// The ops of a row on rank 0.
std::vector<op*> called(subject& s, const std::string& row) { return s.find(0, "", row); }

/// The sentence that refuses the program after a change of the model's rows.
said with_rows(const std::function<void(std::vector<specification::row_facts>&)>& change) {
  subject s = silu();
  change(s.model.rows);
  const equivalence e = s.check();
  CHECK(!e.holds);
  return placed_of(e.reasons.at(0)).what;
}

}  // namespace

TEST_CASE("the model says what the op_rows of a user's ops declare") {
  const auto& rows = silu().model.rows;
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].row == "silu");
  CHECK(rows[0].rule == "y = x");
  CHECK(rows[0].gradients == "x = step(dy, x)");
  CHECK(rows[1].row == "step");
  CHECK(rows[1].rule == "dx = dy' x");
  REQUIRE(penalties().model.rows.size() == 2);
  CHECK(penalties().model.rows[0].rule == "loss = sum(t w) x");
  CHECK(silu().check().holds);
  CHECK(penalties().check().holds);
}

TEST_CASE("one fault in a program with a user's op is refused") {
  check_refused(silu(), said{7576, {"dx", "x"}},
                [](subject& s) { swap_reads(*called(s, "step")[0], "dy", "x"); });
  check_refused(silu(), [](subject& s) {  // step is silu's gradient; it reads another layer's x
    subject::read_of(*called(s, "step")[0], "x") = subject::read_of(*called(s, "step")[1], "x");
  });
  check_refused(silu(), [](subject& s) { called(s, "silu")[0]->row = "step"; });
  check_refused(silu(), [](subject& s) { called(s, "silu")[0]->row = "gelu"; });
  check_refused(silu(), [](subject& s) { s.leave_out(0, *called(s, "silu")[1]); });
  check_refused(silu(), said{7720, {"number", "2"}}, [](subject& s) { called(s, "silu")[0]->number = 2; });
  check_refused(penalties(), [](subject& s) { called(s, "square_loss")[0]->number *= 2; });
  check_refused(penalties(), [](subject& s) { called(s, "square_loss_grad")[0]->number *= 2; });
  check_refused(penalties(), [](subject& s) {
    op& o = *called(s, "square_loss")[0];
    view& v = subject::port(o, "loss");
    v.adds = !v.adds;
  });
}

TEST_CASE("the call of a user's kernel names other numbers than its op") {
  for (const char* row : {"square_loss", "square_loss_grad"})
    check_refused(penalties(), 7751, [&](subject& s) { called(s, row)[0]->given.back() *= 2; });
  check_refused(penalties(), 7751, [](subject& s) { called(s, "square_loss")[0]->given.clear(); });
  check_refused(penalties(), said{7778, {"12345"}}, [](subject& s) {
    op& o = *called(s, "square_loss")[0];
    o.given.insert(o.given.begin(), 12345);
  });
}

TEST_CASE("faults beside a user's op are refused") {
  std::vector<std::string> sums;
  for (const op& o : silu().p.ranks[0].ops)
    if (o.kind == op_kind::collective && o.name.starts_with("silu_mlp: ") &&
        std::find(sums.begin(), sums.end(), o.name) == sums.end())
      sums.push_back(o.name);
  CHECK(sums.size() == 2);  // one in forward, one in backward
  for (const std::string& name : sums)
    check_refused(silu(), [&](subject& s) {
      for (int rank = 0; rank < 2; ++rank) s.leave_out(rank, *s.find(rank, name).at(0));
    });
  check_refused(silu(), [](subject& s) {  // the x of another layer's linear_dw
    subject::read_of(*called(s, "linear_dw").at(3), "x") =
        subject::read_of(*called(s, "linear_dw").at(5), "x");
  });
}

TEST_CASE("a certificate carries the rows of a user's ops; without them nothing is claimed") {
  const std::string text = certificate({{silu().p, silu().order}}, silu().model);
  CHECK(verify(text) == "");
  certified read = read_certificate(text);
  CHECK(certificate({{read.steps[0].program, read.steps[0].verdict}}, read.model) == text);
  CHECK(check_equivalence(read.steps[0].program, read.steps[0].verdict, read.model).holds);
  read.model.rows.clear();
  const equivalence unknown = check_equivalence(read.steps[0].program, read.steps[0].verdict, read.model);
  CHECK(!unknown.holds);
  CHECK(unknown.has_unknown_row);
  CHECK(placed_of(unknown.reasons.at(0)).what == said{7635, {"silu"}});
  std::string damaged = text;
  damaged.replace(damaged.find("[\"silu\",\"y(t w)"), 8, "[");
  CHECK(rankc::test::said_in(verify(damaged)).id == 7115);
}

TEST_CASE("rows of a user's claim functions of their operands, under names of their own") {
  using rows = std::vector<specification::row_facts>;
  const auto rule = [](const std::string& text) { return with_rows([&](rows& r) { r[0].rule = text; }); };
  const auto is_no_function = [](const said& why) {
    // 7713: the text names a port that the row does not have.
    return why == said{7744, {"silu"}} || why.id == 7713;
  };
  const auto needs = [](const std::string& text) { return with_rows([&](rows& r) { r[0].needs = text; }); };
  for (const char* text : {"y = 1 * x", "y = 0", "y = x + x", "y = max(w) x", "y = gelu(x)", "y = number * x",
                           "y = parts(w) x", "y = y", "x = x", "y = x x", "y = sum(q) x", "y = sum(w) x",
                           "y = x x x x x x x x x x x x x x x x x x"})
    CHECK_MESSAGE(is_no_function(rule(text)), text);
  for (const char* text : {"like gelu", "converts", "counts", "commutative", "positions", "whole(w) grouped"})
    CHECK_MESSAGE((needs(text) == said{7744, {"silu"}}), text);
  // A result of which an operand is no part might be given another operand there.
  CHECK(with_rows([](rows& r) { r[1].rule = "dx = dy'"; }) == said{7744, {"step"}});
  for (const std::string name : {"gelu", "adamw", "sum_squares", ""}) {
    const said expected{7743, {name}};
    CHECK_MESSAGE(with_rows([&](rows& r) { r[0].row = name; }) == expected, name);
  }
  CHECK(with_rows([&](rows& r) { r[0].row = "step"; }) == said{7743, {"step"}});
  CHECK(needs("whole(w") == said{7714, {"silu", "(w"}});
  CHECK(with_rows([](rows& r) { r[0].unknown = "it has no dual"; }) ==
        said{7745, {"silu", "it has no dual"}});
  CHECK(with_rows([](rows& r) { r[0].gradients = "x = step(x, dy)"; }).id == 7433);
  CHECK(with_rows([](rows& r) { r[0].gradients = "_1 = step(dy, x); x = gelu_grad(_1, x)"; }).id == 7433);
  CHECK(with_rows([](rows& r) { r[0].gradients = "x = step(dy, _1)"; }) == said{7713, {"silu", "_1"}});
  CHECK(rule("y = sum(A) x") == said{7718, {"silu", "sum(A) x"}});
  CHECK(with_rows([](rows& r) { r[0].ports = "y(t w) y(t w)"; }) == said{7747, {"silu", "y"}});
  CHECK(with_rows([](rows& r) { r[0].gradients = ""; }).id != 0);
}

}  // namespace own_rows_test
