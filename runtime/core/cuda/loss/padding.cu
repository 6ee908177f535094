// SPDX-License-Identifier: Apache-2.0
// Masks of the logits that only pad a vocabulary. In place, only the padding is touched.
#include <rankc/contract/masked_logit.hpp>
#include <rankc/runtime/cuda/kernels.hpp>

#include "../device/device.cuh"

#include <algorithm>

namespace rankc::runtime::cuda {
namespace {

constexpr int padding_threads = 128;

/// y = x in the first `kept` columns, and `other` in the rest. Columns before `begin` are not written. A
/// block processes a token's row.
template <class T>
__global__ void __launch_bounds__(padding_threads)
    fill_padding(T* y, const T* x, int vocab, int begin, int kept, float other) {
  const std::size_t row = std::size_t{blockIdx.x} * vocab;
  for (int c = begin + threadIdx.x; c < vocab; c += padding_threads)
    y[row + c] = c < kept ? x[row + c] : from_float<T>(other);
}

template <class T>
void launch_padding(const lane& on, const char* name, at y, at x, int tokens, int vocab, int first,
                    double columns, double other) {
  const int kept = static_cast<int>(std::clamp(columns - first, 0.0, static_cast<double>(vocab)));
  T *to = on.at<T>(y), *from = on.at<T>(x);
  const int begin = to == from ? kept : 0;
  if (begin == vocab) return;
  launch(on, name, fill_padding<T>, tokens, padding_threads, 0, to, from, vocab, begin, kept,
         static_cast<float>(other));
}

}  // namespace

template <class T>
void mask_padding(const lane& on, at y, at x, int tokens, int vocab, int first, double columns) {
  launch_padding<T>(on, "mask_padding", y, x, tokens, vocab, first, columns, masked_logit);
}

template <class T>
void mask_padding_grad(const lane& on, at dx, at dy, int tokens, int vocab, int first, double columns) {
  launch_padding<T>(on, "mask_padding_grad", dx, dy, tokens, vocab, first, columns, 0);
}

template void mask_padding<float>(const lane&, at, at, int, int, int, double);
template void mask_padding<bf16>(const lane&, at, at, int, int, int, double);
template void mask_padding_grad<float>(const lane&, at, at, int, int, int, double);
template void mask_padding_grad<bf16>(const lane&, at, at, int, int, int, double);

}  // namespace rankc::runtime::cuda
