// SPDX-License-Identifier: Apache-2.0
// The properties of the optimizer's kernels that the proof relies on: squares of parts add up, and an
// element's update depends on that element and the norm alone.
#include "../runtime/core/host/workspace.hpp"

#include <array>

namespace rankc::test {
namespace {

using runtime::range;

constexpr std::size_t count = 67;
const std::vector<range> whole{{0, count, true}};
const std::vector<range> parts{{41, 26, true}, {0, 1, true}, {1, 12, true}, {13, 28, true}};

constexpr runtime::step_input step{.lr = 0.1,
                                   .weight_decay = 0.05,
                                   .clip = 0.3,
                                   .beta1 = 0.9,
                                   .beta2 = 0.95,
                                   .eps = 1e-8,
                                   .step = 3,
                                   .momentum = 0.9,
                                   .nesterov = true};

double squares(const values& gradient, std::span<const range> of, double before, bool adds) {
  workspace<double> w;
  const at total = w.put(values{before});
  host::sum_squares<double>(w.lane(), total, w.put(gradient), of, adds);
  return w.get(total, 1)[0];
}

/// Weights, gradients, first and second moments, norm.
using state = std::array<values, 5>;
state random_state() {
  state s;
  for (unsigned i = 0; i < 4; ++i) s[i] = random_values(count, 21 + i);
  for (double& second : s[3]) second = second * second;
  s[4] = {17};
  return s;
}

/// The rows of updates.
enum class row { adamw, sgd, sgd_without_momentum };
constexpr row rows[]{row::adamw, row::sgd, row::sgd_without_momentum};

state updated(row by, state s, const std::vector<std::vector<range>>& calls) {
  workspace<double> w;
  w.rank().input = step;
  std::array<at, 5> where;
  for (std::size_t i = 0; i < 5; ++i) where[i] = w.put(s[i]);
  for (const std::vector<range>& of : calls) switch (by) {
      case row::adamw:
        host::adamw<double>(w.lane(), where[0], where[1], where[2], where[3], where[4], of);
        break;
      case row::sgd:
        host::sgd<double>(w.lane(), where[0], where[1], where[2], where[4], of);
        break;
      case row::sgd_without_momentum:
        host::sgd<double, double, runtime::no_moment>(w.lane(), where[0], where[1], {}, where[4], of);
    }
  for (std::size_t i = 0; i < 5; ++i) s[i] = w.get(where[i], s[i].size());
  return s;
}

TEST_CASE("squares of parts add up") {
  const values gradient = random_values(count, 20);
  const double all = squares(gradient, whole, 0, false);
  CHECK(all > 1);
  CHECK(squares(gradient, parts, 0, false) == doctest::Approx(all).epsilon(1e-14));
  double sum = 0.5;
  for (const range& part : parts) sum = squares(gradient, {&part, 1}, sum, true);
  CHECK(sum == doctest::Approx(all + 0.5).epsilon(1e-14));
}

TEST_CASE("updates of parts are parts of the update") {
  for (const row by : rows) {
    const state before = random_state(), want = updated(by, before, {whole});
    CHECK(want[0] != before[0]);
    CHECK((want[2] != before[2]) == (by != row::sgd_without_momentum));
    CHECK((want[3] != before[3]) == (by == row::adamw));
    CHECK(updated(by, before, {parts}) == want);
    CHECK(updated(by, before, {{parts[2]}, {parts[0], parts[3]}, {parts[1]}}) == want);
  }
}

TEST_CASE("an element's update is of that element and the norm") {
  for (const row by : rows) {
    const state before = random_state(), want = updated(by, before, {whole});
    for (std::size_t operand = 0; operand < 5; ++operand) {
      if (operand == 2 && by == row::sgd_without_momentum) continue;
      if (operand == 3 && by != row::adamw) continue;
      state moved = before;
      const std::size_t element = operand == 4 ? 0 : 29;
      moved[operand][element] += 0.25;
      const state got = updated(by, moved, {whole});
      for (std::size_t i = 0; i < count; ++i) {
        INFO("operand " << operand << ", element " << i);
        CHECK((got[0][i] == want[0][i]) == (operand != 4 && i != element));
      }
    }
  }
}

}  // namespace
}  // namespace rankc::test
