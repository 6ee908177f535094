// SPDX-License-Identifier: Apache-2.0
// The memory for a kernel of the host runtime.
#pragma once
#include "../numbers/matrix.hpp"

#include <rankc/runtime/host/kernels.hpp>

#include <algorithm>
#include <vector>

namespace field {

namespace host = rankc::host;

/// A size as kernels take it.
inline int whole(std::int64_t n) { return static_cast<int>(n); }

/// Memory for one kernel call. Offsets stay valid as it grows; take the lane after the last operand.
class kernel_memory {
 public:
  rankc::runtime::at room(std::size_t count) {
    const rankc::runtime::at where{memory_.size() * sizeof(double)};
    memory_.resize(memory_.size() + count);
    return where;
  }
  rankc::runtime::at room(const matrix& m) { return room(m.of.size()); }
  rankc::runtime::at put(const matrix& m) {
    const rankc::runtime::at where = room(m.of.size());
    std::copy(m.of.begin(), m.of.end(), memory_.end() - static_cast<std::ptrdiff_t>(m.of.size()));
    return where;
  }
  /// Numbers that are not ids become -1, which is in no table.
  rankc::runtime::at put_ids(const matrix& m) {
    const rankc::runtime::at where = room(m.of.size());
    auto* to = reinterpret_cast<std::int32_t*>(memory_.data() + where.byte / sizeof(double));
    for (double id : m.of) *to++ = id >= 0 && id < (1 << 20) ? static_cast<std::int32_t>(id) : -1;
    return where;
  }
  const host::lane& lane() {
    rank_.arena = reinterpret_cast<std::byte*>(memory_.data());
    return rank_[0];
  }
  host::rank& rank() { return rank_; }
  void take(rankc::runtime::at where, matrix& to) const {
    std::copy_n(memory_.begin() + static_cast<std::ptrdiff_t>(where.byte / sizeof(double)), to.of.size(),
                to.of.begin());
  }
  void take_ids(rankc::runtime::at where, matrix& to) const {
    const auto* from = reinterpret_cast<const std::int32_t*>(memory_.data() + where.byte / sizeof(double));
    for (double& id : to.of) id = *from++;
  }
  double number(rankc::runtime::at where) const { return memory_[where.byte / sizeof(double)]; }

 private:
  std::vector<double> memory_;
  host::rank rank_;
};

}  // namespace field
