// SPDX-License-Identifier: Apache-2.0
// The kernel of a user's optimizer for a text that is recorded: declared here, and recorded in own_op.ipp.
#pragma once
#include <span>

#include "silu.hpp"

namespace user {

template <class T>
void adagrad(const lane&, rankc::runtime::at weights, rankc::runtime::at gradients,
             rankc::runtime::at squares, rankc::runtime::at norm_squared,
             std::span<const rankc::runtime::range>, std::span<const double> numbers);

}  // namespace user
