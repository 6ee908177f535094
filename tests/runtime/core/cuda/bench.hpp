// SPDX-License-Identifier: Apache-2.0
// The bench on which kernels are tested: a single rank on device 0, operands in its arena, and access to the
// results. Inputs are random but rounded to the kernel's type, so that the f64 reference sees the same
// numbers. Outputs begin as NaN, so that a missing element shows.
#pragma once
#include <rankc/runtime/cuda/context.hpp>
#include <rankc/runtime/cuda/kernels.hpp>

#include "lone_rank.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

namespace rankc::runtime::cuda::test {

using numbers = std::vector<double>;

/// The error of rounding to T: half a unit in the last place of f32's 24 bits, or bf16's 8.
template <class T>
inline constexpr double half_unit = std::is_same_v<T, float> ? 0x1p-24 : 0x1p-9;

template <class T>
double rounded(double x) {
  if constexpr (std::is_same_v<T, float>) return static_cast<float>(x);
  else return __bfloat162float(__float2bfloat16_rn(static_cast<float>(x)));
}

/// Random numbers in (-size, size), each a number of type T.
template <class T>
numbers random_numbers(std::size_t count, double size, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> draw(-size, size);
  numbers made(count);
  for (double& x : made) x = rounded<T>(draw(engine));
  return made;
}

inline std::vector<std::int32_t> random_ids(std::size_t count, int below, unsigned seed) {
  std::mt19937 engine(seed);
  std::vector<std::int32_t> made(count);
  for (std::int32_t& id : made) id = static_cast<std::int32_t>(engine() % static_cast<unsigned>(below));
  return made;
}

class bench {
 public:
  bench() : context_(0, alone_.about, 0) {}
  rank& of() { return context_.of(); }
  const lane& on() { return context_.of()[0]; }

  /// From here on every operand begins 4 bytes past a multiple of 256: wide loads would fault.
  void misplace() { used_ += 4; }
  context& owner() { return context_; }

  /// Set where AdamW of a bf16 program writes the rounded weights.
  void working_copy_at(at where) { alone_.layout.working_copy = where; }

  /// Put numbers into the arena as type T.
  template <class T>
  at put(const numbers& values) {
    std::vector<T> typed(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) typed[i] = T(static_cast<float>(values[i]));
    return put_raw(typed);
  }
  at put(const std::vector<std::int32_t>& ids) { return put_raw(ids); }

  /// Room for an output of `count` elements, filled with NaN.
  template <class T>
  at room(std::size_t count) {
    return put<T>(numbers(count, std::numeric_limits<double>::quiet_NaN()));
  }

  template <class T>
  numbers take(at from, std::size_t count) {
    std::vector<T> typed(count);
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
    REQUIRE(cudaMemcpy(typed.data(), of().at<T>(from), count * sizeof(T), cudaMemcpyDeviceToHost) ==
            cudaSuccess);
    numbers values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<double>(static_cast<float>(typed[i]));
    return values;
  }

 private:
  template <class T>
  at put_raw(const std::vector<T>& typed) {
    const at where{used_};
    used_ += (typed.size() * sizeof(T) + 255) / 256 * 256;
    REQUIRE(used_ <= alone_.layout.arena_bytes);
    REQUIRE(cudaMemcpy(of().at<T>(where), typed.data(), typed.size() * sizeof(T), cudaMemcpyHostToDevice) ==
            cudaSuccess);
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);  // the copy may outlast its call
    return where;
  }

  lone_rank alone_{std::size_t{128} << 20, true};
  std::size_t used_ = 0;
  context context_;
};

/// Check every element within `absolute` + `relative` *
/// wanted
/// ; the first wrong one is printed.
inline void check_close(const char* what, const numbers& got, const numbers& wanted, double relative,
                        double absolute) {
  INFO(what);
  REQUIRE(got.size() == wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double off = std::abs(got[i] - wanted[i]);
    if (off <= absolute + relative * std::abs(wanted[i])) continue;
    FAIL_CHECK("element " << i << " of " << got.size() << " is " << got[i] << ", wanted " << wanted[i]
                          << ", off by " << off);
    return;
  }
  CHECK(!got.empty());
}

/// Check an output that the kernel computes in f32 and rounds once to T. `terms`: the magnitude of the
/// numbers summed into an element, to which f32's rounding is relative.
template <class T>
void check_rounded(const char* what, const numbers& got, const numbers& wanted, double terms = 1.0) {
  check_close(what, got, wanted, std::is_same_v<T, float> ? 1e-5 : 2 * half_unit<T>, 2e-6 * terms);
}

}  // namespace rankc::runtime::cuda::test
