// SPDX-License-Identifier: Apache-2.0
// The threads and buffers of OpenBLAS under a memory limit.
#pragma once

namespace rankc::runtime::host {

/// True if the memory limits allow `threads` more threads that run GEMMs.
bool can_have_blas_threads(int threads);

/// Makes OpenBLAS allocate a buffer for each thread that runs GEMMs. OpenBLAS keeps the buffers. A GEMM that
/// gets no buffer retries for ever. Without a limit OpenBLAS allocates each buffer at the thread's first
/// GEMM.
/// Errors: failure (70) that states the bytes needed, the bytes of the process, and its limits.
void reserve_blas_buffers(int threads);

}  // namespace rankc::runtime::host
