// SPDX-License-Identifier: Apache-2.0
#include "../bench.hpp"

#include <algorithm>
#include <limits>

namespace rankc::runtime::cuda::test::cross_entropy_test {
namespace {

// This rank's columns are [first, first + vocab) of a vocabulary of 2000; tops come from all of it.
struct shape {
  int tokens, vocab, first;
};
constexpr shape shapes[] = {{70, 2000, 0}, {70, 1000, 1000}, {20, 333, 600}};

TEST_CASE_TEMPLATE("the pieces of vocab-parallel cross entropy", T, float, bf16) {
  for (const auto [tokens, vocab, first] : shapes) {
    CAPTURE(vocab);
    CAPTURE(first);
    bench b;
    const std::size_t count = static_cast<std::size_t>(tokens) * vocab;
    const numbers logits = random_numbers<T>(count, 5.0, 1),
                  dsums = random_numbers<float>(2 * tokens, 1.0, 2);
    const auto targets = random_ids(tokens, 2000, 3);
    const at logits_at = b.put<T>(logits), dsums_at = b.put<float>(dsums), targets_at = b.put(targets),
             top_at = b.room<float>(tokens), sums_at = b.room<float>(2 * tokens),
             dlogits_at = b.room<T>(count);
    row_max<T>(b.on(), top_at, logits_at, tokens, vocab);
    exp_sums<T>(b.on(), sums_at, logits_at, top_at, targets_at, tokens, vocab, first);
    exp_sums_grad<T>(b.on(), dlogits_at, dsums_at, logits_at, top_at, targets_at, tokens, vocab, first);
    numbers top(tokens), sums(2 * tokens, 0.0), dlogits(count);
    for (int n = 0; n < tokens; ++n) {
      const auto row = logits.begin() + static_cast<std::ptrdiff_t>(n) * vocab;
      top[n] = *std::max_element(row, row + vocab);
      for (int c = 0; c < vocab; ++c) {
        const bool target = targets[n] == first + c;
        const double e = std::exp(row[c] - top[n]);
        sums[2 * n] += e;
        if (target) sums[2 * n + 1] = row[c] - top[n];
        dlogits[static_cast<std::size_t>(n) * vocab + c] =
            dsums[2 * n] * e + (target ? dsums[2 * n + 1] : 0.0);
      }
    }
    check_close("top", b.take<float>(top_at, tokens), top, 0.0, 0.0);
    check_close("sums", b.take<float>(sums_at, 2 * tokens), sums, 1e-5, 1e-6);
    check_rounded<T>("dlogits", b.take<T>(dlogits_at, count), dlogits);
    exp_sums_grad<T>(b.on(), logits_at, dsums_at, logits_at, top_at, targets_at, tokens, vocab, first);
    check_rounded<T>("dlogits in place", b.take<T>(logits_at, count), dlogits);
  }
}

TEST_CASE_TEMPLATE("softmax's sums and gradient over a whole vocabulary", T, float, bf16) {
  struct shape {
    int tokens, vocab;
    bool misplaced;
  };
  // Packs of several rounds; fewer than a block; no packs; packs that addresses forbid; more than shared
  // memory holds.
  for (const auto [tokens, vocab, misplaced] :
       {shape{9, 40000, false}, shape{300, 2000, false}, shape{20, 333, false}, shape{11, 1000, true},
        shape{3, 60000, false}})
    for (const double size : {5.0, 60.0}) {
      CAPTURE(vocab);
      CAPTURE(size);
      bench b;
      if (misplaced) b.misplace();
      const std::size_t count = static_cast<std::size_t>(tokens) * vocab;
      numbers logits = random_numbers<T>(count, size, 1);
      for (int c = 0; c < vocab; ++c) logits[c] = rounded<T>(0.01 * c);  // each is a new maximum
      logits[count - 1] = -std::numeric_limits<double>::infinity();
      logits[count - vocab] = -std::numeric_limits<double>::infinity();
      auto targets = random_ids(tokens, vocab - 2, 3);
      for (auto& target : targets) ++target;  // never one of the two logits that are minus infinity
      const double scale = 0.37;
      const at logits_at = b.put<T>(logits), targets_at = b.put(targets), top_at = b.room<float>(tokens),
               sums_at = b.room<float>(2 * tokens), dlogits_at = b.room<T>(count);
      softmax_sums<T>(b.on(), top_at, sums_at, logits_at, targets_at, tokens, vocab);
      softmax_grad<T>(b.on(), dlogits_at, sums_at, logits_at, top_at, targets_at, tokens, vocab, 0, scale);
      numbers top(tokens), sums(2 * tokens, 0.0), dlogits(count);
      for (int n = 0; n < tokens; ++n) {
        const auto row = logits.begin() + static_cast<std::ptrdiff_t>(n) * vocab;
        top[n] = *std::max_element(row, row + vocab);
        for (int c = 0; c < vocab; ++c) sums[2 * n] += std::exp(row[c] - top[n]);
        sums[2 * n + 1] = row[targets[n]] - top[n];
        for (int c = 0; c < vocab; ++c)
          dlogits[static_cast<std::size_t>(n) * vocab + c] =
              scale * (std::exp(row[c] - top[n]) / sums[2 * n] - (targets[n] == c ? 1.0 : 0.0));
      }
      check_close("top", b.take<float>(top_at, tokens), top, 0.0, 0.0);
      check_close("sums", b.take<float>(sums_at, 2 * tokens), sums, 2e-5, 1e-6);
      check_rounded<T>("dlogits", b.take<T>(dlogits_at, count), dlogits);
      const at again_at = b.put<T>(logits), once_at = b.room<T>(count),
               sums_once_at = b.room<float>(2 * tokens);
      softmax_grad<T>(b.on(), logits_at, sums_at, logits_at, top_at, targets_at, tokens, vocab, 0, scale);
      check_rounded<T>("dlogits in place", b.take<T>(logits_at, count), dlogits);
      softmax_sums_grad<T>(b.on(), once_at, sums_once_at, again_at, targets_at, tokens, vocab, scale);
      check_close("sums in one visit", b.take<float>(sums_once_at, 2 * tokens), sums, 2e-5, 1e-6);
      check_rounded<T>("dlogits in one visit", b.take<T>(once_at, count), dlogits);
      softmax_sums_grad<T>(b.on(), again_at, sums_once_at, again_at, targets_at, tokens, vocab, scale);
      check_rounded<T>("dlogits in one visit, in place", b.take<T>(again_at, count), dlogits);
    }
}

TEST_CASE("cross entropy of the sums, and its gradient") {
  for (const int tokens : {1, 3000}) {
    bench b;
    const double scale = 1.0 / 3000;
    numbers sums = random_numbers<float>(2 * tokens, 3.0, 1);
    for (int n = 0; n < tokens; ++n) sums[2 * n] = std::abs(sums[2 * n]) + 1.0;
    for (double& x : sums) x = rounded<float>(x);
    const at sums_at = b.put<float>(sums), loss_at = b.room<float>(1), dsums_at = b.room<float>(2 * tokens);
    cross_entropy<float>(b.on(), loss_at, sums_at, tokens, scale, false);
    cross_entropy_grad<float>(b.on(), dsums_at, sums_at, tokens, scale);
    double loss = 0.0;
    numbers dsums(2 * tokens);
    for (int n = 0; n < tokens; ++n) {
      loss += scale * (std::log(sums[2 * n]) - sums[2 * n + 1]);
      dsums[2 * n] = scale / sums[2 * n];
      dsums[2 * n + 1] = -scale;
    }
    check_close("loss", b.take<float>(loss_at, 1), {loss}, 1e-5, 1e-6);
    check_close("dsums", b.take<float>(dsums_at, 2 * tokens), dsums, 1e-6, 0.0);
    cross_entropy<bf16>(b.on(), loss_at, sums_at, tokens, scale, true);
    check_close("loss, accumulated", b.take<float>(loss_at, 1), {2 * loss}, 1e-5, 2e-6);
  }
}

}  // namespace
}  // namespace rankc::runtime::cuda::test::cross_entropy_test
