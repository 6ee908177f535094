// SPDX-License-Identifier: Apache-2.0
// Declares the kernel of a user's optimizer for a recorded program. own_op.ipp defines it: it records the
// call.
#pragma once
#include <span>

#include "silu.hpp"

namespace user {

template <class T>
void adagrad(const lane&, rankc::runtime::at weights, rankc::runtime::at gradients,
             rankc::runtime::at squares, rankc::runtime::at norm_squared,
             std::span<const rankc::runtime::range>, std::span<const double> numbers);

}  // namespace user
