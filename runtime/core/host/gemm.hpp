// SPDX-License-Identifier: Apache-2.0
// Row-major GEMMs of the host kernels, with one name for both element types. OpenBLAS computes them.
#pragma once
#include <cblas.h>

namespace rankc::runtime::host {

enum class form { plain, transposed };

constexpr CBLAS_TRANSPOSE blas(form f) { return f == form::plain ? CblasNoTrans : CblasTrans; }

/// c = alpha op(a) op(b) + beta c. With beta 0 the old contents of c are not read.
/// Shapes: op(a) (m, k), op(b) (k, n), c (m, n); `ld*` is the distance of two rows in memory.
inline void gemm(form fa, form fb, int m, int n, int k, float alpha, const float* a, int lda, const float* b,
                 int ldb, float beta, float* c, int ldc) {
  cblas_sgemm(CblasRowMajor, blas(fa), blas(fb), m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
inline void gemm(form fa, form fb, int m, int n, int k, double alpha, const double* a, int lda,
                 const double* b, int ldb, double beta, double* c, int ldc) {
  cblas_dgemm(CblasRowMajor, blas(fa), blas(fb), m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

}  // namespace rankc::runtime::host
