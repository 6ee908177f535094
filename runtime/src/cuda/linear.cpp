// SPDX-License-Identifier: Apache-2.0
// Linear layers without an epilogue, and with a residual, which is a product's C.
#include <rankc/runtime/cuda/kernels.hpp>

#include "linear_shapes.hpp"

namespace rankc::cuda {

template <class T>
void linear(rank& r, at y, at x, at w, int tokens, int in, int out) {
  product(r, "linear", forward_shape<T>(tokens, in, out),
          {.d = r.at<T>(y), .a = r.at<T>(w), .b = r.at<T>(x)});
}

template <class T>
void linear_add(rank& r, at y, at x, at w, at residual, int tokens, int in, int out) {
  product(r, "linear_add", forward_shape<T>(tokens, in, out, true),
          {.d = r.at<T>(y), .a = r.at<T>(w), .b = r.at<T>(x), .c = r.at<T>(residual)});
}

template <class T>
void linear_dx(rank& r, at dx, at dy, at w, int tokens, int in, int out, bool accumulate) {
  T* d = r.at<T>(dx);
  product(r, "linear_dx", input_gradient_shape<T>(tokens, in, out, accumulate),
          {.d = d, .a = r.at<T>(w), .b = r.at<T>(dy), .c = accumulate ? d : nullptr});
}

template <class T>
void linear_dw(rank& r, at dw, at dy, at x, int tokens, int in, int out, bool accumulate) {
  float* d = r.at<float>(dw);
  product(r, "linear_dw", weight_gradient_shape<T>(tokens, in, out, accumulate),
          {.d = d, .a = r.at<T>(x), .b = r.at<T>(dy), .c = accumulate ? d : nullptr});
}

template void linear<float>(rank&, at, at, at, int, int, int);
template void linear<bf16>(rank&, at, at, at, int, int, int);
template void linear_add<float>(rank&, at, at, at, at, int, int, int);
template void linear_add<bf16>(rank&, at, at, at, at, int, int, int);
template void linear_dx<float>(rank&, at, at, at, int, int, int, bool);
template void linear_dx<bf16>(rank&, at, at, at, int, int, int, bool);
template void linear_dw<float>(rank&, at, at, at, int, int, int, bool);
template void linear_dw<bf16>(rank&, at, at, at, int, int, int, bool);

}  // namespace rankc::cuda
