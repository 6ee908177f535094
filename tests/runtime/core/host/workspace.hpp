// SPDX-License-Identifier: Apache-2.0
// The bench of kernel tests: a rank with an arena that a test fills and reads as vectors, with a guard
// between operands, and derivatives by central differences.
#pragma once
#include <doctest/doctest.h>

#include <rankc/runtime/host/kernels.hpp>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <vector>

namespace rankc::test {

using runtime::at;
using values = std::vector<double>;
using ids = std::vector<std::int32_t>;

/// Reproducible values in [-1, 1) that f32 holds exactly.
inline values random_values(std::size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  values v(count);
  for (double& x : v) x = static_cast<float>(static_cast<double>(generator()) / 2147483648.0 - 1.0);
  return v;
}

inline ids random_ids(std::size_t count, int below, unsigned seed) {
  std::mt19937 generator(seed);
  ids v(count);
  for (std::int32_t& x : v) x = static_cast<std::int32_t>(generator() % static_cast<unsigned>(below));
  return v;
}

/// A rank whose arena is allocated piece by piece. Room for outputs starts as NaN, so that an element that a
/// kernel leaves out is seen; the guards after each piece are checked at the end.
template <class T>
class workspace {
 public:
  workspace() { rank_.arena = reinterpret_cast<std::byte*>(memory_.data()); }
  workspace(const workspace&) = delete;
  workspace& operator=(const workspace&) = delete;
  ~workspace() {
    for (const std::size_t g : guards_)
      for (std::size_t i = 0; i < guard; ++i) CHECK(memory_[g + i] == guard_value);
  }

  const host::lane& lane() { return rank_[0]; }
  host::rank& rank() { return rank_; }

  at put(const values& v) {
    const at where = room(v.size());
    for (std::size_t i = 0; i < v.size(); ++i) rank_.at<T>(where)[i] = static_cast<T>(v[i]);
    return where;
  }
  at put(const ids& v) {
    const at where = room(v.size());  // at least as wide as int32
    std::copy(v.begin(), v.end(), rank_.at<std::int32_t>(where));
    return where;
  }
  at room(std::size_t count) {
    const at where{used_ * sizeof(T)};
    std::fill_n(memory_.data() + used_, count, std::numeric_limits<T>::quiet_NaN());
    std::fill_n(memory_.data() + used_ + count, guard, guard_value);
    guards_.push_back(used_ + count);
    used_ += count + guard;
    REQUIRE(used_ <= memory_.size());
    return where;
  }
  values get(at where, std::size_t count) const {
    return values(rank_.at<T>(where), rank_.at<T>(where) + count);
  }

 private:
  static constexpr std::size_t guard = 16;
  static constexpr T guard_value = T(-12345);
  std::vector<T> memory_ = std::vector<T>(std::size_t{1} << 20);
  std::vector<std::size_t> guards_;
  std::size_t used_ = 0;
  host::rank rank_;
};

/// The tolerance of f32 and f64 results against an f64 reference, for sums of a few hundred terms near 1.
template <class T>
constexpr double tolerance = sizeof(T) == 8 ? 2e-14 : 1e-5;

/// Check all elements within tol * max(1,
/// want
/// ).
inline void check_near(const values& got, const values& want, double tol) {
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    CAPTURE(got[i]);
    CAPTURE(want[i]);
    CHECK(std::abs(got[i] - want[i]) <= tol * std::max(1.0, std::abs(want[i])));
  }
}

inline double dot(const values& a, const values& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

inline values sum(values a, const values& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

/// d (dy . f(x)) / d x, each element by central differences of fourth order.
inline values derivative(const std::function<values(const values&)>& f, values x, const values& dy) {
  constexpr double h = 1e-3;
  values d(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double middle = x[i];
    const auto moved = [&](double by) {
      x[i] = middle + by;
      return dot(dy, f(x));
    };
    d[i] = (8 * (moved(h) - moved(-h)) - (moved(2 * h) - moved(-2 * h))) / (12 * h);
    x[i] = middle;
  }
  return d;
}

/// The error of fourth-order differences in f64.
constexpr double difference_tolerance = 2e-10;

}  // namespace rankc::test
