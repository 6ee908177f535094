// SPDX-License-Identifier: Apache-2.0
// The times of a rank's step as words that go from one process to the others. A name is text there, not an address.
#pragma once
#include <rankc/runtime/engine.hpp>

#include <set>
#include <span>
#include <string>
#include <vector>

namespace rankc::cuda {

/// Shapes: as many words as needed, whole.
std::vector<float> packed(std::span<const runtime::traced>);

/// Append what `packed` has packed; `names` keeps the texts that the times then refer to.
void unpack(std::span<const float>, std::set<std::string>& names, std::vector<runtime::traced>& into);

}  // namespace rankc::cuda
