// SPDX-License-Identifier: Apache-2.0
// Parts of axes: the operands of an op on a part, and the place of its results in the whole.
#pragma once
#include "row.hpp"

#include <functional>

namespace rankc::test::rows {

struct interval {
  int begin, end;
  int size() const { return end - begin; }
};
/// Intervals of some axes, by their letters.
using cut = std::map<char, interval>;

/// The sizes of an op on a part, and the part's offset.
setting part(const row&, const setting&, const cut&);
/// The elements of a port that are in a part.
values part(const row&, std::size_t port, const setting&, const values&, const cut&);
operands part(const row&, const setting&, const operands&, const cut&);
/// Combine each element of a part with the same element of the whole tensor. Parts along an axis that the
/// port does not have contain the same elements.
void gather(const row&, std::size_t port, const setting&, values& whole, const values& of_part, const cut&,
            const std::function<double(double, double)>& combine);

/// An axis split into random parts that begin at multiples of `step`.
std::vector<interval> random_parts(int size, int step, unsigned seed);

}  // namespace rankc::test::rows
