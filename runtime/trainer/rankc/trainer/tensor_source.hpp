// SPDX-License-Identifier: Apache-2.0
// Where the values of whole tensors come from, read by parts: a file, a checkpoint's pieces, a folder with
// other names.
#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace rankc::runtime {

/// Rows [row, row + rows) and columns [column, column + columns) of a tensor; a vector has one column.
struct area {
  std::size_t row, rows, column, columns;
  bool operator==(const area&) const = default;
  std::size_t count() const { return rows * columns; }
};

/// What two areas have in common; without rows or columns where there is nothing.
area common(const area&, const area&);

/// Whether areas hold every element of a tensor exactly once, in bands of columns, each of them rows above
/// rows.
bool covers(std::vector<area>, std::size_t rows, std::size_t columns);

class tensor_source {
 public:
  virtual ~tensor_source() = default;

  /// What it is called in messages.
  virtual const std::string& name() const = 0;
  /// Its tensors, one or two dims each.
  virtual const std::map<std::string, std::vector<std::size_t>>& shapes() const = 0;

  /// Check what is needed to read an area: that files match their checksums, and values are finite. An area
  /// that lies in what was checked before costs nothing.
  /// Errors: failure (1) that names file and tensor, with what is expected and what is there; so does `read`.
  virtual void check(const std::string& tensor, const area&) = 0;

  /// Read an area. Shapes: `to` has rows x columns of the area, row-major.
  virtual void read(const std::string& tensor, const area&, double* to) const = 0;
};

}  // namespace rankc::runtime
