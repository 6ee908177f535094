// SPDX-License-Identifier: Apache-2.0
// How the bias of a router's choice is moved.
#pragma once

namespace rankc {

/// Of a bias that is moved so that experts are chosen equally often, and has the number of choices in the
/// place of a gradient: by how much in a step (0: the parameter is none), and the mean of these numbers. It
/// goes up by `rate` where its expert was chosen less often than the mean, down where more often. Source:
/// Wang et al. 2024 (auxiliary-loss-free load balancing).
struct load_balance {
  double rate = 0, mean = 0;
  constexpr bool any() const { return rate != 0; }
  constexpr bool operator==(const load_balance&) const = default;
};

}  // namespace rankc
