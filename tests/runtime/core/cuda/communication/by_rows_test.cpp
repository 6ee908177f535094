// SPDX-License-Identifier: Apache-2.0
// Rows that move between GPUs while a GEMM computes others, on two GPUs, and on four if there are four: every
// element, in f32 and bf16, with odd numbers of rows and columns at odd addresses.
#include "../regions.hpp"

#include <rankc/runtime/calls.hpp>
#include <rankc/runtime/cuda/context.hpp>
#include <rankc/runtime/cuda/kernels.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>
#include <string>

namespace rankc::runtime::cuda::test {
namespace {

using runtime::matrix, runtime::calls::all_gather, runtime::calls::reduce_scatter,
    runtime::calls::run_by_rows;

constexpr step_input nothing{
    .lr = 0, .weight_decay = 0, .clip = 0, .beta1 = 0, .beta2 = 0, .eps = 1, .step = 1};
constexpr std::size_t rows = 37, columns = 1031;  // sizes of one part

/// A row-wise kernel in place of a GEMM: each row of y depends on the same row of x.
template <class T, std::size_t Rows>
struct doubled {
  matrix<T, Rows, columns> y, x;
  void operator()(const lane& on) const { add<T>(on, y.where, x.where, x.where, Rows * columns); }
};

template <std::size_t Ranks>
constexpr std::size_t whole = Ranks * rows * columns;
template <std::size_t Ranks>
constexpr std::size_t behind = 1 + whole<Ranks>;  // the first element of a second tensor in a region

/// With weights a: gradients = the first part of every rank; first moment = twice that; second moment, at
/// `behind` = the rank's part of the sum of 2 a. After the weights, and after the gradients: twice the rank's
/// first part, computed while rows move.
template <class T, std::size_t Ranks>
void move(rank& r) {
  const lane& on = r[compute];
  const layout& l = *r.where;
  begin(on, "move");
  const auto at_element = [](at region, std::size_t i) { return region + i * sizeof(T); };
  const matrix<T, Ranks * rows, columns> a{at_element(l.weights, 1)}, all{at_element(l.gradients, 1)},
      twice{at_element(l.first_moment, 1)}, dealt{at_element(l.second_moment, 1)};
  const matrix<T, rows, columns> own{a.where}, sum{at_element(l.second_moment, behind<Ranks>)};
  run_by_rows(
      on, all_gather{.over = over::tp, .to = all, .from = own, .site = {0, "rows"}},
      [&](auto part) {
        const auto y = part(twice);
        return doubled<T, decltype(y)::count / columns>{y, part(all)};
      },
      doubled<T, rows>{{at_element(l.weights, behind<Ranks>)}, own});
  run_by_rows(
      on,
      [&](auto part) {
        const auto y = part(dealt);
        return doubled<T, decltype(y)::count / columns>{y, part(a)};
      },
      reduce_scatter{.over = over::tp, .to = sum, .from = dealt, .site = {1, "sums"}},
      doubled<T, rows>{{at_element(l.gradients, behind<Ranks>)}, own});
}

template <class T>
std::size_t count_wrong(const std::vector<T>& got, std::size_t first, std::size_t count, auto wanted) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i) wrong += value(got[first + i]) != value(number<T>(wanted(i)));
  return wrong;
}

template <class T, std::size_t Ranks>
void check_rows(const placement& way = {}) {
  int gpus = 0;
  cudaGetDeviceCount(&gpus);
  if (gpus < static_cast<int>(Ranks)) return;
  CAPTURE(Ranks);
  CAPTURE(sizeof(T));
  constexpr std::size_t part = rows * columns, count = 2 * behind<Ranks>;
  tables t(1, static_cast<int>(Ranks));
  enlarge(t, count);
  std::vector<int> members(Ranks);
  std::iota(members.begin(), members.end(), 0);
  t.connect("all", members, std::vector<int>(Ranks, compute), over::tp);
  void (*const bodies[])(rank&) = {move<T, Ranks>};
  const auto e = install({.about = t.about, .train = bodies, .evaluate = bodies}, way);
  for (int time = 0; time < 4; ++time) {
    std::vector<T> a[Ranks];
    for (std::size_t rank = 0; rank < Ranks; ++rank) {
      for (std::size_t i = 0; i < count; ++i)
        a[rank].push_back(number<T>(std::sin(static_cast<double>(i + 100003 * rank) + time)));
      put(*e, static_cast<int>(rank), region::weights, a[rank]);
    }
    std::vector<traced> calls;
    if (time == 2) e->step_by_calls(nothing, calls);  // call by call
    else e->step(nothing);
    for (std::size_t rank = 0; rank < Ranks; ++rank) {
      const auto all = take<T>(*e, static_cast<int>(rank), region::gradients, count);
      const auto twice = take<T>(*e, static_cast<int>(rank), region::first_moment, count);
      const auto sums = take<T>(*e, static_cast<int>(rank), region::second_moment, count);
      const auto beside_gathers = take<T>(*e, static_cast<int>(rank), region::weights, count);
      const auto gathered = [&](std::size_t i) { return value(a[i / part][1 + i % part]); };
      CHECK(count_wrong(all, 1, Ranks * part, gathered) == 0);
      CHECK(count_wrong(twice, 1, Ranks * part, [&](std::size_t i) { return 2 * gathered(i); }) == 0);
      for (const auto& meanwhile : {beside_gathers, all})
        CHECK(count_wrong(meanwhile, behind<Ranks>, part,
                          [&](std::size_t i) { return 2 * value(a[rank][1 + i]); }) == 0);
      CHECK(count_wrong(sums, behind<Ranks>, part, [&](std::size_t i) {
              float sum = 0;
              for (const auto& of : a) sum += static_cast<float>(2 * value(of[1 + rank * part + i]));
              return sum;
            }) == 0);
    }
  }
}

TEST_CASE("rows that are gathered for a product, and dealt out behind one") {
  check_rows<float, 2>();
  check_rows<bf16, 2>();
  check_rows<float, 4>();
  check_rows<bf16, 4>();
}
// Two ranks alone: for more than two terms, NCCL rounds after each addition.
TEST_CASE("the same of two by NCCL, one after the other") { check_rows<bf16, 2>({.maps_peers = false}); }

}  // namespace
}  // namespace rankc::runtime::cuda::test
