// SPDX-License-Identifier: Apache-2.0
// Declares the kernels of the odd plans' loss for a recorded program. own_op.ipp defines them: they record
// the calls.
#pragma once
#include "silu.hpp"

namespace user {

template <class T>
void square_loss(const lane&, rankc::runtime::at loss, rankc::runtime::at x, std::size_t count, double scale,
                 bool accumulate);
template <class T>
void square_loss_grad(const lane&, rankc::runtime::at dx, rankc::runtime::at x, std::size_t count,
                      double scale);

}  // namespace user
