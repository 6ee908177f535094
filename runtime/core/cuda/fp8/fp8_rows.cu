// SPDX-License-Identifier: Apache-2.0
// fp8 tensors with a scale for each row and each column.
#include <rankc/runtime/cuda/kernels.hpp>

#include "fp8_rows.cuh"
#include "fp8_sources.cuh"

namespace rankc::runtime::cuda {

template <class T>
void to_e4m3_rows(const lane& on, at q, at x, int rows, int columns) {
  round_to_rows(on, "to_e4m3_rows", q, numbers<T>{on.at<T>(x), columns}, rows, columns);
}
template <class T>
void gelu_e4m3_rows(const lane& on, at y, at x, int tokens, int width) {
  round_to_rows(on, "gelu_e4m3_rows", y, gelu_numbers<T>{on.at<T>(x), width}, tokens, width);
}
template <class T>
void swiglu_e4m3_rows(const lane& on, at y, at gate, at up, int tokens, int width, int stride) {
  round_to_rows(on, "swiglu_e4m3_rows", y, swiglu_numbers<T>{on.at<T>(gate), on.at<T>(up), stride}, tokens,
                width);
}
template <class T>
void swiglu_grad_e4m3_rows(const lane& on, at dgate, at dup, at dy, at gate, at up, int tokens, int width,
                           int stride) {
  const auto source =
      swiglu_gradients_of<T>(on, "swiglu_grad_e4m3_rows", dgate, dup, dy, gate, up, width, stride);
  round_to_rows(on, "swiglu_grad_e4m3_rows", dgate, source, tokens, width);
}

template decltype(to_e4m3_rows<float>) to_e4m3_rows<float>;
template decltype(to_e4m3_rows<bf16>) to_e4m3_rows<bf16>;
template decltype(gelu_e4m3_rows<float>) gelu_e4m3_rows<float>;
template decltype(gelu_e4m3_rows<bf16>) gelu_e4m3_rows<bf16>;
template decltype(swiglu_e4m3_rows<float>) swiglu_e4m3_rows<float>;
template decltype(swiglu_e4m3_rows<bf16>) swiglu_e4m3_rows<bf16>;
template decltype(swiglu_grad_e4m3_rows<float>) swiglu_grad_e4m3_rows<float>;
template decltype(swiglu_grad_e4m3_rows<bf16>) swiglu_grad_e4m3_rows<bf16>;

}  // namespace rankc::runtime::cuda
