// SPDX-License-Identifier: Apache-2.0
// A rank's GPU fails while the other waits for its rows, in a row-wise all-gather or reduce-scatter.
#include "expect.hpp"
#include "fault.hpp"

#include <rankc/runtime/calls.hpp>
#include <rankc/runtime/cuda/kernels.hpp>

namespace rankc::runtime::cuda::test {
namespace {

constexpr std::size_t columns = 8, rows = parameters / columns / 2;
using runtime::matrix, runtime::calls::all_gather, runtime::calls::reduce_scatter,
    runtime::calls::run_by_rows;

template <std::size_t Rows>
struct doubled {
  matrix<float, Rows, columns> y, x;
  void operator()(const lane& on) const { add<float>(on, y.where, x.where, x.where, Rows * columns); }
};

void move_rows(rank& r) {
  const lane& on = r[compute];
  begin(on, "F0");
  const matrix<float, 2 * rows, columns> all{gradients}, made{first_moment};
  const matrix<float, rows, columns> own{weights}, sum{second_moment};
  const auto product = [&](auto part) {
    const auto y = part(made);
    return doubled<decltype(y)::count / columns>{y, part(all)};
  };
  run_by_rows(on, all_gather{.over = over::tp, .to = all, .from = own, .site = {0, "rows"}}, product);
  if (r.index == 1) fault_if_asked(r);
  run_by_rows(on, product, reduce_scatter{.over = over::tp, .to = sum, .from = made, .site = {1, "sums"}});
}

TEST_CASE("a fault before rows move frees the other rank") {
  tables t(1, 2);
  t.connect("tp", {0, 1}, {compute, compute}, over::tp);
  void (*const bodies[])(rank&) = {move_rows};
  check_that_a_fault_ends_the_step(*install({.about = t.about, .train = bodies, .evaluate = bodies}));
}

}  // namespace
}  // namespace rankc::runtime::cuda::test
