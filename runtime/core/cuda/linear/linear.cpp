// SPDX-License-Identifier: Apache-2.0
// Linear layers without an epilogue, and with a residual, which is the C of a GEMM.
#include <rankc/runtime/cuda/kernels.hpp>

#include "linear_shapes.hpp"

namespace rankc::runtime::cuda {

template <class T>
void linear(const lane& on, at y, at x, at w, int tokens, int in, int out) {
  product(on, "linear", forward_shape<T>(tokens, in, out),
          {.d = on.at<T>(y), .a = on.at<T>(w), .b = on.at<T>(x)});
}

template <class T>
void linear_add(const lane& on, at y, at x, at w, at residual, int tokens, int in, int out) {
  product(on, "linear_add", forward_shape<T>(tokens, in, out, true),
          {.d = on.at<T>(y), .a = on.at<T>(w), .b = on.at<T>(x), .c = on.at<T>(residual)});
}

template <class T>
void linear_dx(const lane& on, at dx, at dy, at w, int tokens, int in, int out, bool accumulate) {
  T* d = on.at<T>(dx);
  product(on, "linear_dx", input_gradient_shape<T>(tokens, in, out, accumulate),
          {.d = d, .a = on.at<T>(w), .b = on.at<T>(dy), .c = accumulate ? d : nullptr});
}

template <class T>
void linear_dw(const lane& on, at dw, at dy, at x, int tokens, int in, int out, bool accumulate) {
  float* d = on.at<float>(dw);
  product(on, "linear_dw", weight_gradient_shape<T>(tokens, in, out, accumulate),
          {.d = d, .a = on.at<T>(x), .b = on.at<T>(dy), .c = accumulate ? d : nullptr});
}

template void linear<float>(const lane&, at, at, at, int, int, int);
template void linear<bf16>(const lane&, at, at, at, int, int, int);
template void linear_add<float>(const lane&, at, at, at, at, int, int, int);
template void linear_add<bf16>(const lane&, at, at, at, at, int, int, int);
template void linear_dx<float>(const lane&, at, at, at, int, int, int, bool);
template void linear_dx<bf16>(const lane&, at, at, at, int, int, int, bool);
template void linear_dw<float>(const lane&, at, at, at, int, int, int, bool);
template void linear_dw<bf16>(const lane&, at, at, at, int, int, int, bool);

}  // namespace rankc::runtime::cuda
