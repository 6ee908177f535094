// SPDX-License-Identifier: Apache-2.0
// Declares the kernels of the odd plans' op for a recorded program. own_op.ipp defines them: they record
// the calls.
#pragma once
#include <rankc/runtime/program.hpp>

#include <cstddef>

#if defined(RANKC_HOST_KERNELS)
namespace rankc::runtime::host {
struct lane;
}
namespace user {
using lane = rankc::host::lane;
}
#else
namespace rankc::runtime::cuda {
struct lane;
}
namespace user {
using lane = rankc::cuda::lane;
}
#endif

namespace user {

template <class T>
void silu(const lane&, rankc::runtime::at y, rankc::runtime::at x, std::size_t count);
template <class T>
void silu_grad(const lane&, rankc::runtime::at dx, rankc::runtime::at dy, rankc::runtime::at x,
               std::size_t count);

}  // namespace user
