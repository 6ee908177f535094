// SPDX-License-Identifier: Apache-2.0
// A source of whole tensors that are read in parts: a file, the pieces of a checkpoint, or a Hugging Face
// folder.
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

/// The intersection of two areas; it has no rows or no columns if they do not overlap.
area common(const area&, const area&);

/// True if areas hold every element of a tensor exactly once, in bands of columns. Within a band, areas are
/// stacked by rows.
bool covers(std::vector<area>, std::size_t rows, std::size_t columns);

class tensor_source {
 public:
  virtual ~tensor_source() = default;

  /// The name in messages.
  virtual const std::string& name() const = 0;
  /// Its tensors, one or two dims each.
  virtual const std::map<std::string, std::vector<std::size_t>>& shapes() const = 0;
  /// The number of rows of the token tables that are tokens, 0 if unknown. The rows after them are padding.
  virtual std::size_t vocabulary() const { return 0; }

  /// Sentences on differences from the plan that do not prevent loading.
  virtual std::vector<std::string> notes() const { return {}; }

  /// Checks that an area can be read: files match their checksums, and values are finite. A tensor of a file
  /// is checked only once.
  /// Errors, also of `read`: failure (1) that names file and tensor, with the found and the expected value.
  virtual void check(const std::string& tensor, const area&) = 0;

  /// Reads an area.
  /// Shapes: `to` has rows x columns of the area, row-major.
  virtual void read(const std::string& tensor, const area&, double* to) const = 0;
};

}  // namespace rankc::runtime
