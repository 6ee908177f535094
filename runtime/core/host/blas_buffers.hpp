// SPDX-License-Identifier: Apache-2.0
// The threads and buffers of OpenBLAS under a limit of memory.
#pragma once

namespace rankc::runtime::host {

/// Whether the limits of memory allow this many more threads that multiply.
bool can_have_blas_threads(int threads);

/// Let OpenBLAS allocate a buffer for each thread that multiplies. OpenBLAS keeps them for its GEMMs. A GEMM
/// that gets no buffer tries for ever. Without a limit OpenBLAS allocates each buffer at the thread's first
/// GEMM.
/// Errors: failure (70) that states what is needed, what the process has, and its limits.
void reserve_blas_buffers(int threads);

}  // namespace rankc::runtime::host
