// SPDX-License-Identifier: Apache-2.0
// A source of whole tensors that are read by parts: a file, the pieces of a checkpoint, or a Hugging Face
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

/// The intersection of two areas; it has no rows or no columns where they do not overlap.
area common(const area&, const area&);

/// Whether areas hold every element of a tensor exactly once, in bands of columns. Within a band, areas
/// follow one another by rows.
bool covers(std::vector<area>, std::size_t rows, std::size_t columns);

class tensor_source {
 public:
  virtual ~tensor_source() = default;

  /// The name for messages.
  virtual const std::string& name() const = 0;
  /// Its tensors, one or two dims each.
  virtual const std::map<std::string, std::vector<std::size_t>>& shapes() const = 0;
  /// The rows of its tables of tokens that are tokens, 0 where that is unknown. The rows after them are
  /// padding.
  virtual std::size_t vocabulary() const { return 0; }

  /// Sentences on differences from the plan that do not keep it from being loaded.
  virtual std::vector<std::string> notes() const { return {}; }

  /// Check that an area can be read: files match their checksums, and values are finite. A file's tensor is
  /// checked only once.
  /// Errors: failure (1) that names file and tensor, with the found and the expected value; so does `read`.
  virtual void check(const std::string& tensor, const area&) = 0;

  /// Read an area. Shapes: `to` has rows x columns of the area, row-major.
  virtual void read(const std::string& tensor, const area&, double* to) const = 0;
};

}  // namespace rankc::runtime
