// SPDX-License-Identifier: Apache-2.0
// The kernels of the odd plans' own loss for a text that is recorded: declared here, and recorded in
// own_op.ipp.
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
