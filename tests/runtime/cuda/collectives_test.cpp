// SPDX-License-Identifier: Apache-2.0
// Collectives over two ranks on two GPUs: every element, in f32 and bf16, at odd counts and places.
#include "regions.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

namespace rankc::cuda::test {
namespace {

constexpr step_input nothing{
    .lr = 0, .weight_decay = 0, .clip = 0, .beta1 = 0, .beta2 = 0, .eps = 1, .step = 1};

/// A rank's piece of an exchange; the exchange as a whole is of two pieces, and begins at an element that no
/// wide load could start from.
constexpr std::size_t pieces[] = {1, 7, 1024, 40001};
constexpr std::size_t exchanged = 2 * (1 + 7 + 1024 + 40001) + std::size(pieces);

/// From the weights a_r of rank r, per exchange: gradients = the sum; first moment = both ranks' first piece;
/// second moment = this rank's piece of the sum, then the maximum of the second pieces.
template <class T>
void exchange(rank& r) {
  const layout& l = *r.where;
  begin(r[compute], "exchange");
  for (const at copy : {l.gradients, l.second_moment})
    REQUIRE(cudaMemcpyAsync(r.at<T>(copy), r.at<T>(l.weights), exchanged * sizeof(T),
                            cudaMemcpyDeviceToDevice, r[compute].stream) == cudaSuccess);
  record(r[compute], {0});
  wait(r[reduce], {0});
  std::size_t first = 1;
  for (const std::size_t n : pieces) {
    const std::size_t here = first * sizeof(T), second = here + n * sizeof(T);
    all_reduce<T>(r[reduce], over::dp, {0, "sum"}, l.gradients + here, 2 * n);
    all_gather<T>(r[reduce], over::dp, {1, "gather"}, l.first_moment + here, l.weights + here, n);
    reduce_scatter<T>(r[reduce], over::dp, {2, "scatter"}, l.second_moment + here, l.weights + here,
                      n);
    all_reduce<T>(r[reduce], over::dp, {3, "most"}, l.second_moment + second, n, reduction::max);
    first += 2 * n + 1;
  }
}

template <class T>
T number(double x) {
  if constexpr (std::is_same_v<T, float>) return static_cast<float>(x);
  else return __float2bfloat16_rn(static_cast<float>(x));
}
template <class T>
double value(T x) {
  return static_cast<double>(static_cast<float>(x));
}

template <class T>
void check_elements(const std::string& what, const std::vector<T>& got, std::size_t first,
                    const std::vector<double>& wanted) {
  CAPTURE(what);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (value(got[first + i]) == wanted[i]) continue;
    FAIL_CHECK("element " << i << " of " << wanted.size() << " is " << value(got[first + i]) << ", wanted "
                          << wanted[i]);
    return;
  }
}

/// Two numbers have one sum, rounded once: the results are exact.
template <class T>
void check_exchange() {
  tables t(1, 2);
  enlarge(t, (exchanged * sizeof(T) + 3) / 4);
  t.connect("dp", {0, 1}, {reduce, reduce}, over::dp);
  void (*const bodies[])(rank&) = {exchange<T>};
  const auto e = install({.about = t.about, .train = bodies, .evaluate = bodies});
  for (int time = 0; time < 3; ++time) {
    std::vector<T> a[2];
    for (int rank = 0; rank < 2; ++rank) {
      for (std::size_t i = 0; i < exchanged; ++i)
        a[rank].push_back(number<T>(std::sin(static_cast<double>(i) + 1000.0 * rank + time)));
      put(*e, rank, region::weights, a[rank]);
    }
    e->step(nothing);
    for (int rank = 0; rank < 2; ++rank) {
      const auto sums = take<T>(*e, rank, region::gradients, exchanged);
      const auto gathered = take<T>(*e, rank, region::first_moment, exchanged);
      const auto rest = take<T>(*e, rank, region::second_moment, exchanged);
      std::size_t first = 1;
      for (const std::size_t n : pieces) {
        std::vector<double> sum, both, most;
        for (std::size_t i = first; i < first + 2 * n; ++i)
          sum.push_back(value(number<T>(value(a[0][i]) + value(a[1][i]))));
        for (const auto& of : a)
          for (std::size_t i = first; i < first + n; ++i) both.push_back(value(of[i]));
        for (std::size_t i = first + n; i < first + 2 * n; ++i)
          most.push_back(std::max(value(a[0][i]), value(a[1][i])));
        const auto mine = sum.begin() + static_cast<std::ptrdiff_t>(rank == 0 ? 0 : n);
        const std::string what = "rank " + std::to_string(rank) + ", pieces of " + std::to_string(n) + ", ";
        check_elements(what + "sum", sums, first, sum);
        check_elements(what + "gather", gathered, first, both);
        check_elements(what + "scatter", rest, first, {mine, mine + static_cast<std::ptrdiff_t>(n)});
        check_elements(what + "maximum", rest, first + n, most);
        first += 2 * n + 1;
      }
    }
  }
}

TEST_CASE("collectives over two ranks in f32") { check_exchange<float>(); }
TEST_CASE("collectives over two ranks in bf16") { check_exchange<bf16>(); }

}  // namespace
}  // namespace rankc::cuda::test
