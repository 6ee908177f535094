// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <rankc/contract/fp8.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include "definition.hpp"
#include "laws.hpp"

namespace rankc::test::rows {

namespace {

/// All non-negative numbers of a type.
values numbers_of(element e) {
  values all;
  for (int code = 0; code < 0x80; ++code) {
    const auto bits = static_cast<unsigned char>(code);
    const double x = e == element::e5m2 ? runtime::from_fp8<double>(runtime::e5m2{bits})
                                        : runtime::from_fp8<double>(runtime::e4m3{bits});
    if (!std::isnan(x)) all.push_back(x);
  }
  return all;
}

/// The distance of x from the nearest of some numbers times a factor.
double distance(const values& numbers, double factor, double x) {
  double least = std::numeric_limits<double>::infinity();
  for (const double n : numbers) least = std::min(least, std::abs(std::abs(x) - n * factor));
  return least;
}

setting sized(int tokens, int in, int out, int width) {
  return {.size = {{'t', tokens}, {'i', in}, {'o', out}, {'w', width}, {'s', 1}, {'v', 1}}};
}

/// A cast rounds each number to the nearest one, keeps numbers of the type, and keeps zeros.
void check_cast(machine& on, const row& r, const setting& s) {
  const values numbers = numbers_of(r.of(0).holds);
  operands o = random_operands(on, r, s, 31);
  o[1][5] = on.rounded(r, 1, {-3.1})[0];  // the largest number
  const double factor = std::abs(o[1][5]) / numbers.back();
  const values made = on.run(r, s, o)[0];
  double off = 0;
  for (std::size_t i = 0; i < made.size(); ++i)
    off = std::max(off, std::abs(std::abs(made[i] - o[1][i]) - distance(numbers, factor, o[1][i])));
  INFO(on.name() << " " << r.op->name << " rounds to another number than the nearest");
  CHECK(off <= 1e-6);
  for (double& x : o[1]) x = 0;
  CHECK(largest(on.run(r, s, o)[0]) == 0);
  for (std::size_t i = 0; i < o[1].size(); ++i)
    o[1][i] = on.rounded(r, 0, {std::sin(static_cast<double>(i))})[0];
  o[1][0] = 1.75;  // a power of two times the type's largest number
  CHECK(on.run(r, s, o)[0] == o[1]);
}

/// Numbers rounded with a scale for each line. A line has `count` numbers with distance `apart`; lines begin
/// at multiples of `step`.
values rounded_lines(const values& x, std::size_t count, std::size_t apart, std::size_t step) {
  values made(x.size());
  for (std::size_t line = 0; line < x.size() / count; ++line) {
    double most = 0;
    for (std::size_t i = 0; i < count; ++i) most = std::max(most, std::abs(x[line * step + i * apart]));
    const double scale = std::exp2(std::floor(std::log2(448 / std::max(most, 1e-12))));
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t at = line * step + i * apart;
      made[at] =
          runtime::from_fp8<double>(runtime::to_fp8<runtime::e4m3>(static_cast<float>(x[at] * scale))) /
          scale;
    }
  }
  return made;
}
/// Each row, and in the transposed copy each column, is rounded with a scale from its largest number; zeros
/// stay zeros.
void check_rows_cast(machine& on, const row& r, const setting& s) {
  operands o = random_operands(on, r, s, 31);
  const auto columns = static_cast<std::size_t>(shape(r, 1, s).back().elements()),
             rows = o[1].size() / columns;
  for (std::size_t i = 0; i < o[1].size();
       ++i) {  // rows and columns have different scales; one row and one column are zero
    const std::size_t row = i / columns, column = i % columns;
    const double scaled = std::ldexp(o[1][i], static_cast<int>(row % 7) - static_cast<int>(column % 5));
    o[1][i] = row == 2 || column == 3 ? 0 : on.rounded(r, 1, {scaled})[0];
  }
  INFO(on.name() << " " << r.op->name);
  CHECK(on.run(r, s, o)[0] == rounded_lines(o[1], columns, 1, columns));
  CHECK(on.by_columns() == rounded_lines(o[1], rows, columns, 1));
}

/// A kernel that computes and rounds gives the bits of both kernels one after the other, and their other
/// results.
void check_maker(machine& on, const row& r, const setting& s) {
  const auto made_of = [&](const ops::narrowed_row& m) { return m.in_fp8 == r.op || m.in_rows == r.op; };
  const row& plain =
      find_row(std::find_if(std::begin(ops::fp8_makers), std::end(ops::fp8_makers), made_of)->of->name);
  const op_row* cast = ops::cast_to(r.of(0).holds, false);
  const row& rounds = *std::find_if(narrowed_rows().begin(), narrowed_rows().end(),
                                    [&](const row& c) { return c.op == cast; });
  const operands o = random_operands(on, r, s, 33);
  INFO(on.name() << " " << r.op->name);
  const operands got = on.run(r, s, o);
  const values by_columns = on.by_columns();
  const operands made = on.run(plain, s, o);
  CHECK(got[0] == on.run(rounds, s, {{}, made[0]})[0]);
  CHECK(by_columns == on.by_columns());
  for (std::size_t p = 1; p < got.size(); ++p)
    if (r.of(p).as == use::out) CHECK(got[p] == made[p]);
}

/// A GEMM equals its definition, also when it adds to its result, and in place where that is allowed.
void check_product(machine& on, const row& r, const setting& s) {
  const operands o = random_operands(on, r, s, 32);
  const operands got = on.run(r, s, o), want = by_definition(on, r, s, o);
  INFO(on.name() << " " << r.op->name);
  CHECK(deviation(got[0], want[0]) <= on.fp8_tolerance());
  check_in_place(on, r, s);
  if (!r.is->ports[0].adds) return;
  values sum = want[0];
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += o[0][i];
  CHECK(deviation(on.run(r, s, o, true)[0], sum, largest(want[0])) <= on.fp8_tolerance());
}

}  // namespace

void check_fp8(machine& on) {
  REQUIRE(narrowed_rows().size() == 27);
  for (const row& r : narrowed_rows())
    for (const setting& s : {sized(48, 32, 64, 80), sized(144, 272, 16, 400), sized(16, 16, 16, 16)}) {
      if (!on.has(r) || r.op == &ops::swiglu_grad_e5m2 || r.op == &ops::swiglu_grad_e4m3_rows)
        continue;  // their results are columns of one tensor, tested in runtime/cuda/fp8_test.cpp
      const auto is_cast = [&](const ops::fp8_cast& c) { return c.row == r.op; };
      const bool casts = std::any_of(std::begin(ops::fp8_casts), std::end(ops::fp8_casts), is_cast);
      if (casts) r.of(0).holds == element::e4m3_rows ? check_rows_cast(on, r, s) : check_cast(on, r, s);
      else if (is_fp8(r.of(0).holds)) check_maker(on, r, s);
      else check_product(on, r, s);
    }
}

}  // namespace rankc::test::rows
