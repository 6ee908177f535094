// SPDX-License-Identifier: Apache-2.0
// Tails: bytes behind the tensors of an optimizer or a norm. Its kernel takes ranges of multiples of
// elements, so it takes these bytes too.
#pragma once
#include <rankc/codegen/program.hpp>

#include <cstddef>
#include <map>

namespace rankc::codegen::algebra {

/// Whether a write of an op puts padding where it is.
inline bool is_padding(const op& o, std::size_t write) {
  return write < o.holds.size() && o.holds[write].kind == holding_kind::padding;
}

/// The tails of one rank.
class tails {
 public:
  explicit tails(const rank_program&);
  /// Whether an access has bytes of a tail.
  bool meet(const access&) const;
  /// The end of the last tail; 0: there is none.
  std::size_t end() const { return end_; }
  /// The end of each tail, by its begin.
  const std::map<std::size_t, std::size_t>& ends() const { return ends_; }

 private:
  std::map<std::size_t, std::size_t> ends_;
  std::size_t end_ = 0;
};

}  // namespace rankc::codegen::algebra
