// SPDX-License-Identifier: Apache-2.0
// The order of the elements of query and key heads in Hugging Face's files. In the plan, rotary positions
// turn elements i and i + n/2 of a head of n elements, and the pairs that do not turn come last.
#pragma once
#include <cstddef>

namespace rankc::runtime {

struct head_order {
  std::size_t elements = 0;  // elements in a head; 0: the order of the plan
  std::size_t turned = 0;    // the first elements of a head in the files, which turn
  bool neighbours = false;   // in the files, elements 2i and 2i + 1 turn together; otherwise halves do

  /// The row in the files that holds row `here` of the plan.
  std::size_t row_there(std::size_t here) const {
    if (elements == 0) return here;
    const std::size_t element = here % elements, pair = element % (elements / 2);
    return here - element + place_there(pair, element == pair ? 0 : 1);
  }

  /// The row of the plan that holds row `there` of the files.
  std::size_t row_here(std::size_t there) const {
    if (elements == 0) return there;
    const std::size_t element = there % elements, still = element - turned;
    const std::size_t first = there - element, half = elements / 2;
    if (element >= turned) return first + turned / 2 + still % rest() + (still >= rest() ? half : 0);
    if (neighbours) return first + element / 2 + element % 2 * half;
    return first + element % (turned / 2) + (element >= turned / 2 ? half : 0);
  }

 private:
  /// The pairs that do not turn.
  std::size_t rest() const { return (elements - turned) / 2; }
  /// The place in a head of the files of the first or second element of a pair of the plan.
  std::size_t place_there(std::size_t pair, std::size_t second) const {
    if (pair >= turned / 2) return turned + second * rest() + pair - turned / 2;
    return neighbours ? 2 * pair + second : pair + second * (turned / 2);
  }
};

/// Visits the runs of consecutive rows that `place` gives for rows [first, first + count): a row, the place
/// of it, and the number of rows.
void each_run(std::size_t first, std::size_t count, const auto& place, auto visit) {
  for (std::size_t row = first, end = first + count, next; row < end; row = next) {
    next = row + 1;
    while (next < end && place(next) == place(row) + (next - row)) ++next;
    visit(row, place(row), next - row);
  }
}

}  // namespace rankc::runtime
