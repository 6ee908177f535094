// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/tensor_source.hpp>

#include <algorithm>
#include <tuple>

namespace rankc::runtime {

area common(const area& a, const area& b) {
  const std::size_t row = std::max(a.row, b.row), column = std::max(a.column, b.column);
  const std::size_t last_row = std::max(row, std::min(a.row + a.rows, b.row + b.rows));
  const std::size_t last_column = std::max(column, std::min(a.column + a.columns, b.column + b.columns));
  return {row, last_row - row, column, last_column - column};
}

bool covers(std::vector<area> areas, std::size_t rows, std::size_t columns) {
  std::erase_if(areas, [](const area& a) { return a.count() == 0; });
  std::sort(areas.begin(), areas.end(), [](const area& a, const area& b) {
    return std::tie(a.column, a.row) < std::tie(b.column, b.row);
  });
  if (rows * columns == 0) return areas.empty();
  std::size_t band = 0, row = 0,
              column = 0;  // columns of the current band; its rows so far, and the columns before it
  for (const area& a : areas) {
    if (row == 0) band = a.columns;
    if (a.row != row || a.column != column || a.columns != band || a.rows > rows - row ||
        a.columns > columns - column)
      return false;
    row += a.rows;
    if (row < rows) continue;
    row = 0;
    column += band;
  }
  return row == 0 && column == columns;
}

}  // namespace rankc::runtime
