// SPDX-License-Identifier: Apache-2.0
// Linear layers with an epilogue of cuBLASLt. In f32, and if cuBLASLt does not support the GEMM (odd sizes,
// addresses), the result is composed of plain GEMMs and the kernels of bias and GELU. So is GELU's gradient
// if that is faster (H200, 4096 tokens, 768 -> 3072). Bias gradients are always composed: DGELU_BGRAD sums in
// bf16 only, and BGRADB, which can sum in f32, costs the GEMM more than the extra kernel does (H200, 65536
// tokens, 768 -> 3072: 0.62 ms against 0.53 ms).
#include <rankc/runtime/cuda/kernels.hpp>

#include "../device/check.hpp"
#include "gelu_sums.hpp"
#include "linear_shapes.hpp"

namespace rankc::runtime::cuda {
namespace {

template <class T>
constexpr bool has_epilogues = sizeof(T) == 2;

std::size_t elements(int rows, int cols) { return static_cast<std::size_t>(rows) * cols; }

/// The milliseconds of a memory-bound kernel over `bytes`, amid GEMMs that keep the GPU at its power limit.
float pass_milliseconds(const lane& on, std::size_t bytes) {
  constexpr double reached = 0.6;  // fraction of the memory's nominal speed
  const double kilohertz = device_attribute(on, cudaDevAttrMemoryClockRate),
               bits = device_attribute(on, cudaDevAttrGlobalMemoryBusWidth);
  return static_cast<float>(bytes / (reached * 2.0 * kilohertz * (bits / 8)));
}

/// True if a GEMM with GELU's gradient takes longer than a plain GEMM and `passes` more reads or writes of
/// its result, by their measured times. The measurements repeat a GEMM, so data that fits into the L2 cache
/// was cached. In a step `before` is not cached.
bool is_slower(const lane& on, float fused, float plain, std::size_t bytes_of_result, int passes) {
  const bool was_cached =
      bytes_of_result < static_cast<std::size_t>(device_attribute(on, cudaDevAttrL2CacheSize));
  return plain > 0 && fused + (was_cached ? pass_milliseconds(on, bytes_of_result) : 0) >
                          plain + pass_milliseconds(on, passes * bytes_of_result);
}

/// The input gradient through GELU as one GEMM. Returns false, with nothing enqueued, if cuBLASLt does not
/// support it or if it is slower.
template <class T>
bool dgelu_product(const lane& on, const char* name, at dx, at dy, at w, at before, int tokens, int in,
                   int out, int passes) {
  if (!has_epilogues<T>) return false;
  const auto fused = input_gradient_shape<T>(tokens, in, out, false, CUBLASLT_EPILOGUE_DGELU),
             plain = input_gradient_shape<T>(tokens, in, out, false);
  product_operands with{.d = on.at<T>(dx), .a = on.at<T>(w), .b = on.at<T>(dy)};
  const float alone = milliseconds_of(on, plain, with);
  with.aux = on.at<T>(before);
  if (is_slower(on, milliseconds_of(on, fused, with), alone, sizeof(T) * elements(tokens, in), passes))
    return false;
  return try_product(on, name, fused, with);
}

}  // namespace

template <class T>
void linear_bias(const lane& on, at y, at x, at w, at b, int tokens, int in, int out) {
  if (has_epilogues<T> &&
      try_product(on, "linear_bias", forward_shape<T>(tokens, in, out, false, CUBLASLT_EPILOGUE_BIAS),
                  {.d = on.at<T>(y), .a = on.at<T>(w), .b = on.at<T>(x), .bias = on.at<T>(b)}))
    return;
  linear<T>(on, y, x, w, tokens, in, out);
  bias<T>(on, y, y, b, tokens, out);
}

template <class T>
void linear_bias_add(const lane& on, at y, at x, at w, at b, at residual, int tokens, int in, int out) {
  if (has_epilogues<T> &&
      try_product(on, "linear_bias_add", forward_shape<T>(tokens, in, out, true, CUBLASLT_EPILOGUE_BIAS),
                  {.d = on.at<T>(y),
                   .a = on.at<T>(w),
                   .b = on.at<T>(x),
                   .c = on.at<T>(residual),
                   .bias = on.at<T>(b)}))
    return;
  linear_add<T>(on, y, x, w, residual, tokens, in, out);
  bias<T>(on, y, y, b, tokens, out);
}

template <class T>
void linear_gelu(const lane& on, at y, at before, at x, at w, int tokens, int in, int out) {
  if (has_epilogues<T> &&
      try_product(on, "linear_gelu", forward_shape<T>(tokens, in, out, false, CUBLASLT_EPILOGUE_GELU_AUX),
                  {.d = on.at<T>(y), .a = on.at<T>(w), .b = on.at<T>(x), .aux = on.at<T>(before)}))
    return;
  linear<T>(on, before, x, w, tokens, in, out);
  gelu<T>(on, y, before, elements(tokens, out));
}

template <class T>
void linear_bias_gelu(const lane& on, at y, at before, at x, at w, at b, int tokens, int in, int out) {
  if (has_epilogues<T> &&
      try_product(on, "linear_bias_gelu",
                  forward_shape<T>(tokens, in, out, false, CUBLASLT_EPILOGUE_GELU_AUX_BIAS),
                  {.d = on.at<T>(y),
                   .a = on.at<T>(w),
                   .b = on.at<T>(x),
                   .bias = on.at<T>(b),
                   .aux = on.at<T>(before)}))
    return;
  linear_bias<T>(on, before, x, w, b, tokens, in, out);
  gelu<T>(on, y, before, elements(tokens, out));
}

template <class T>
void linear_dx_gelu(const lane& on, at dx, at dy, at w, at before, int tokens, int in, int out) {
  if (dgelu_product<T>(on, "linear_dx_gelu", dx, dy, w, before, tokens, in, out, 3)) return;
  linear_dx<T>(on, dx, dy, w, tokens, in, out, false);
  gelu_grad<T>(on, dx, dx, before, elements(tokens, in));
}

template <class T>
void linear_dx_gelu_bias(const lane& on, at dx, at db, at dy, at w, at before, int tokens, int in, int out,
                         bool accumulate) {
  if (dgelu_product<T>(on, "linear_dx_gelu_bias", dx, dy, w, before, tokens, in, out, 2))
    return bias_grad<T>(on, db, dx, tokens, in, accumulate);
  linear_dx<T>(on, dx, dy, w, tokens, in, out, false);
  gelu_grad_bias<T>(on, dx, db, dx, before, tokens, in, accumulate);
}

template <class T>
void linear_dw_bias(const lane& on, at dw, at db, at dy, at x, int tokens, int in, int out, bool accumulate) {
  linear_dw<T>(on, dw, dy, x, tokens, in, out, accumulate);
  bias_grad<T>(on, db, dy, tokens, out, accumulate);
}

template void linear_bias<float>(const lane&, at, at, at, at, int, int, int);
template void linear_bias<bf16>(const lane&, at, at, at, at, int, int, int);
template void linear_bias_add<float>(const lane&, at, at, at, at, at, int, int, int);
template void linear_bias_add<bf16>(const lane&, at, at, at, at, at, int, int, int);
template void linear_gelu<float>(const lane&, at, at, at, at, int, int, int);
template void linear_gelu<bf16>(const lane&, at, at, at, at, int, int, int);
template void linear_bias_gelu<float>(const lane&, at, at, at, at, at, int, int, int);
template void linear_bias_gelu<bf16>(const lane&, at, at, at, at, at, int, int, int);
template void linear_dx_gelu<float>(const lane&, at, at, at, at, int, int, int);
template void linear_dx_gelu<bf16>(const lane&, at, at, at, at, int, int, int);
template void linear_dx_gelu_bias<float>(const lane&, at, at, at, at, at, int, int, int, bool);
template void linear_dx_gelu_bias<bf16>(const lane&, at, at, at, at, at, int, int, int, bool);
template void linear_dw_bias<float>(const lane&, at, at, at, at, int, int, int, bool);
template void linear_dw_bias<bf16>(const lane&, at, at, at, at, int, int, int, bool);

}  // namespace rankc::runtime::cuda
