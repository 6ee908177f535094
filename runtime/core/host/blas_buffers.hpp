// SPDX-License-Identifier: Apache-2.0
// The buffers of OpenBLAS under a limit of memory.
#pragma once

namespace rankc::runtime::host {

/// Let OpenBLAS allocate a buffer for each thread that multiplies. It keeps them for its products. Without one
/// it would try to allocate one for ever. Where memory has no limit, it allocates them at the first product.
/// Errors: failure (70) that states what is needed, what the process has, and its limits.
void reserve_blas_buffers(int threads);

}  // namespace rankc::runtime::host
