// SPDX-License-Identifier: Apache-2.0
// Slurm's compressed lists: of hosts, `gpu-a[01-03,07],b2`, and of a number per node, `8(x2),4`.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace rankc::runtime {

/// The hosts of a list, in its order; numbers keep their leading zeros.
/// Errors: failure (2) naming the list, if it is malformed, has more than 100,000 hosts, or a host name with
/// more than 255 characters.
std::vector<std::string> expand_hosts(std::string_view list);

/// The count of each node, in the order of the nodes.
/// Errors: failure (2) naming the list, if it is malformed or has more than 100,000 nodes.
std::vector<int> expand_counts(std::string_view list);

}  // namespace rankc::runtime
