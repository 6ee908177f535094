// SPDX-License-Identifier: Apache-2.0
// Rows that convert placements: by their facts, the whole tensor does not change, whether it is held as parts
// of rows or as parts of a sum or maximum. The members' parts are combined before and after.
#include "../runtime/core/host/plan.hpp"
#include "row.hpp"

#include <algorithm>
#include <numeric>
#include <random>
#include <tuple>

namespace rankc::test::rows {
namespace {

using parts = std::vector<values>;  // by member

/// Each member's result of a collective on `given`. in_place: the smaller operand is a part of the larger.
parts after(const op_row& op, const parts& given, bool in_place) {
  const std::size_t group = given.size(), count = given[0].size();
  parts made(group);
  plan p(1, static_cast<int>(group), 1);
  train_body = [&](rank& r) {
    const auto me = static_cast<std::size_t>(r.index), other_bytes = 8 * count * group, bytes = 8 * count;
    const at x = data<double>(0), whole = in_place ? x : x + other_bytes;
    const auto set = [&](at where) { std::copy(given[me].begin(), given[me].end(), r.at<double>(where)); };
    const auto get = [&](at where, std::size_t n) {
      made[me].assign(r.at<double>(where), r.at<double>(where) + n);
    };
    const message m{0, op.name.data()};
    if (op.converts == conversion::all_gather) {
      const at own = in_place ? whole + me * bytes : x;
      set(own);
      all_gather<double>(r[compute], over::dp, m, whole, own, count);
      get(whole, count * group);
    } else if (op.converts == conversion::reduce_scatter) {
      const at own = in_place ? x + me * (bytes / group) : x + other_bytes;
      set(x);
      reduce_scatter<double>(r[compute], over::dp, m, own, x, count / group);
      get(own, count / group);
    } else {
      set(x);
      all_reduce<double>(r[compute], over::dp, m, x, count,
                         op.converts == conversion::all_reduce_max ? reduction::max : reduction::sum);
      get(x, count);
    }
  };
  p.install()->step(input(1));
  return made;
}

/// The rows of all members, one member after the other; below, each element's sum or maximum.
values joined(const parts& all) {
  values whole;
  for (const values& part : all) whole.insert(whole.end(), part.begin(), part.end());
  return whole;
}
values reduced(const parts& all, bool maximum) {
  values whole = all[0];
  for (std::size_t m = 1; m < all.size(); ++m)
    for (std::size_t i = 0; i < whole.size(); ++i)
      whole[i] = maximum ? std::max(whole[i], all[m][i]) : whole[i] + all[m][i];
  return whole;
}

/// Whole numbers, whose sums are exact in any order.
parts random_parts_of(std::size_t group, std::size_t count) {
  std::mt19937 generator(19);
  parts all(group, values(count));
  for (values& part : all)
    for (double& x : part) x = static_cast<double>(generator() % 2001) - 1000;
  return all;
}

TEST_CASE("conversions leave the whole what it is") {
  for (const op_row* op : op_rows())
    for (const std::size_t group : {1, 2, 3, 5})
      for (const bool in_place : {false, true}) {
        if (!op->communicates() || op->converts >= conversion::all_to_all)
          continue;  // tested below, and in slots_test.cpp
        const std::size_t rows_of = op->converts == conversion::reduce_scatter ? 7 * group : 7;
        const parts given = random_parts_of(group, rows_of * 11), made = after(*op, given, in_place);
        INFO(op->name << " of " << group << std::string(in_place ? ", in place" : ""));
        const bool maximum = op->converts == conversion::all_reduce_max;
        const values whole = op->converts == conversion::all_gather ? joined(given) : reduced(given, maximum);
        if (op->converts == conversion::reduce_scatter) CHECK(joined(made) == whole);
        else CHECK(made == parts(group, whole));
      }
}

/// Each member's result of an exchange of heads.
parts exchanged(const parts& given, const runtime::head_exchange& by) {
  const std::size_t count = given[0].size();
  parts made(given.size());
  plan p(1, static_cast<int>(given.size()), 1);
  train_body = [&](rank& r) {
    const auto me = static_cast<std::size_t>(r.index);
    const at x = data<double>(0), y = x + 8 * count, between = y + 8 * count;
    std::copy(given[me].begin(), given[me].end(), r.at<double>(x));
    all_to_all<double>(r[compute], over::dp, {0, "exchange"}, y, between, x, by);
    made[me].assign(r.at<double>(y), r.at<double>(y) + count);
  };
  p.install()->step(input(1));
  return made;
}

TEST_CASE(
    "an exchange makes of a rank's tokens in all heads all tokens in its heads, in their order, and back") {
  for (const int group : {2, 3, 5})
    for (const auto& [rows, half, width] : {std::tuple(1, 1, 1), {2, 3, 4}, {3, 1, 5}}) {
      const int seq = 2 * half * group, all = width * group;
      CAPTURE(group);
      CAPTURE(rows);
      const values whole = random_parts_of(1, static_cast<std::size_t>(rows * seq * all))[0];
      const auto at_token = [&](int row, int position) {
        return whole.begin() + (row * seq + position) * all;
      };
      parts by_tokens(static_cast<std::size_t>(group)), by_heads = by_tokens;
      for (int m = 0; m < group; ++m) {
        const auto n = static_cast<std::size_t>(m);
        for (int row = 0; row < rows; ++row) {
          for (const int chunk : {m, 2 * group - 1 - m})
            for (int i = chunk * half; i < (chunk + 1) * half; ++i)
              by_tokens[n].insert(by_tokens[n].end(), at_token(row, i), at_token(row, i) + all);
          for (int i = 0; i < seq; ++i)
            by_heads[n].insert(by_heads[n].end(), at_token(row, i) + m * width,
                               at_token(row, i) + (m + 1) * width);
        }
      }
      CHECK(exchanged(by_tokens, {rows, seq, group, width, true}) == by_heads);
      CHECK(exchanged(by_heads, {rows, seq, group, width, false}) == by_tokens);
    }
}

TEST_CASE("a shift sends two tensors of different sizes to the next rank, or back to the one before") {
  for (const ring_way way : {ring_way::next, ring_way::back})
    for (const std::size_t group : {2, 3, 5}) {
      CAPTURE(group);
      const std::size_t count = 7 * 11, second_count = 7 * 5, all = count + second_count;
      const parts given = random_parts_of(group, all);
      parts made(group);
      plan p(1, static_cast<int>(group), 1);
      train_body = [&](rank& r) {
        const auto me = static_cast<std::size_t>(r.index);
        const at x = data<double>(0), y = x + 8 * count, first = x + 8 * all, second = first + 8 * count;
        std::copy(given[me].begin(), given[me].end(), r.at<double>(x));
        shift<double>(r[compute], over::dp, {0, "shift"}, first, second, x, y, count, second_count, way);
        made[me].assign(r.at<double>(first), r.at<double>(first) + all);
      };
      p.install()->step(input(1));
      for (std::size_t m = 0; m < group; ++m)
        CHECK(made[m] == given[(m + (way == ring_way::next ? group - 1 : 1)) % group]);
    }
}

TEST_CASE("replicate runs nothing") {
  CHECK(ops::replicate.on_host().name.empty());
  CHECK(ops::replicate.on_cuda().name.empty());
}

}  // namespace
}  // namespace rankc::test::rows
