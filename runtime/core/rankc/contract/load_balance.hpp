// SPDX-License-Identifier: Apache-2.0
// The update of the bias with which a router chooses experts.
#pragma once

namespace rankc {

/// The update of a bias that balances the load of experts. Its gradient is the number of tokens that chose
/// each expert, and `mean` is the mean of these numbers. A step adds `rate` to the bias of an expert that was
/// chosen less often than the mean, and subtracts it if more often. With rate 0 the parameter is not such a
/// bias.
/// Source: Wang et al. 2024 (auxiliary-loss-free load balancing).
struct load_balance {
  double rate = 0, mean = 0;
  constexpr bool any() const { return rate != 0; }
  constexpr bool operator==(const load_balance&) const = default;
};

}  // namespace rankc
