// SPDX-License-Identifier: Apache-2.0
// fp8 tensors with one scale each.
#include <rankc/runtime/cuda/kernels.hpp>

#include "fp8_sources.cuh"

namespace rankc::runtime::cuda {

template <class T>
void to_e4m3(const lane& on, at q, at x, int rows, int columns) {
  round_to_fp8<runtime::e4m3>(on, "to_e4m3", q, numbers<T>{on.at<T>(x), columns}, rows, columns);
}
template <class T>
void to_e5m2(const lane& on, at q, at x, int rows, int columns) {
  round_to_fp8<runtime::e5m2>(on, "to_e5m2", q, numbers<T>{on.at<T>(x), columns}, rows, columns);
}
template <class T>
void gelu_e4m3(const lane& on, at y, at x, int tokens, int width) {
  round_to_fp8<runtime::e4m3>(on, "gelu_e4m3", y, gelu_numbers<T>{on.at<T>(x), width}, tokens, width);
}
template <class T>
void swiglu_e4m3(const lane& on, at y, at gate, at up, int tokens, int width, int stride) {
  round_to_fp8<runtime::e4m3>(on, "swiglu_e4m3", y, swiglu_numbers<T>{on.at<T>(gate), on.at<T>(up), stride},
                              tokens, width);
}
template <class T>
void swiglu_grad_e5m2(const lane& on, at dgate, at dup, at dy, at gate, at up, int tokens, int width,
                      int stride) {
  const auto source = swiglu_gradients_of<T>(on, "swiglu_grad_e5m2", dgate, dup, dy, gate, up, width, stride);
  round_to_fp8<runtime::e5m2>(on, "swiglu_grad_e5m2", dgate, source, tokens, width);
}

template void to_e4m3<float>(const lane&, at, at, int, int);
template void to_e4m3<bf16>(const lane&, at, at, int, int);
template void to_e5m2<float>(const lane&, at, at, int, int);
template void to_e5m2<bf16>(const lane&, at, at, int, int);
template void gelu_e4m3<float>(const lane&, at, at, int, int);
template void gelu_e4m3<bf16>(const lane&, at, at, int, int);
template void swiglu_e4m3<float>(const lane&, at, at, at, int, int, int);
template void swiglu_e4m3<bf16>(const lane&, at, at, at, int, int, int);
template void swiglu_grad_e5m2<float>(const lane&, at, at, at, at, at, int, int, int);
template void swiglu_grad_e5m2<bf16>(const lane&, at, at, at, at, at, int, int, int);

}  // namespace rankc::runtime::cuda
