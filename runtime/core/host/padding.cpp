// SPDX-License-Identifier: Apache-2.0
// Masks of the logits that only pad a vocabulary.
#include <rankc/contract/masked_logit.hpp>
#include <rankc/runtime/host/kernels.hpp>

#include <algorithm>
#include <cstddef>

namespace rankc::runtime::host {
namespace {

/// y = x in columns before `columns` of the whole vocabulary, and `other` in the rest. y may be x.
template <class T>
void fill_padding(T* y, const T* x, int tokens, int vocab, int first, double columns, T other) {
  const auto kept = static_cast<std::ptrdiff_t>(std::clamp(columns - first, 0.0, static_cast<double>(vocab)));
  for (int n = 0; n < tokens; ++n, x += vocab, y += vocab) {
    if (y != x) std::copy_n(x, kept, y);
    std::fill(y + kept, y + vocab, other);
  }
}

}  // namespace

template <class T>
void mask_padding(const lane& on, at y, at x, int tokens, int vocab, int first, double columns) {
  fill_padding(on.at<T>(y), on.at<T>(x), tokens, vocab, first, columns, static_cast<T>(masked_logit));
}

template <class T>
void mask_padding_grad(const lane& on, at dx, at dy, int tokens, int vocab, int first, double columns) {
  fill_padding(on.at<T>(dx), on.at<T>(dy), tokens, vocab, first, columns, T(0));
}

template decltype(mask_padding<float>) mask_padding<float>;
template decltype(mask_padding<double>) mask_padding<double>;
template decltype(mask_padding_grad<float>) mask_padding_grad<float>;
template decltype(mask_padding_grad<double>) mask_padding_grad<double>;

}  // namespace rankc::runtime::host
