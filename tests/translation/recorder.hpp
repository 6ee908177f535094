// SPDX-License-Identifier: Apache-2.0
// The recorder that implements the runtime's symbols: one at a time, for one rank.
#pragma once
#include "recording.hpp"

#include <rankc/contract/fp8.hpp>
#include <rankc/runtime/program.hpp>

#include <map>
#include <span>
#include <type_traits>
#include <utility>

namespace translation {

namespace runtime = rankc::runtime;
using runtime::at;

/// The type of statistics and of gradients of parameters if activations have type T.
template <class T>
using wide = std::conditional_t<sizeof(T) == 2, float, T>;

template <class... N>
std::size_t product(N... sizes) {
  return (std::size_t{1} * ... * static_cast<std::size_t>(sizes));
}

class recorder {
 public:
  recorder(const runtime::description&, int rank);
  ~recorder();
  recorder(const recorder&) = delete;
  recorder& operator=(const recorder&) = delete;
  static recorder& active();

  const runtime::description& about() const { return about_; }
  const runtime::rank_row& row() const { return row_; }
  const runtime::layout& where() const { return about_.layouts[static_cast<std::size_t>(row_.pp)]; }

  call& add(std::string function, int lane);
  call& last() { return out_.calls.back(); }
  /// The next call of this function on a lane is row-pipelined with a GEMM.
  void move_by_rows(std::string function, int lane);
  communication meet(int lane, runtime::over, const runtime::message&, std::size_t bytes);
  void mark(int lane, runtime::event);
  void wait(int lane, runtime::event);
  void follow(int next, int before);
  /// From here to `leave_action`, all calls must be on this lane.
  void enter_action(int lane);
  void leave_action() { acting_on_ = 0; }
  /// Report that the last call misuses the runtime, apart from its bytes.
  void misuse_in_call(std::string sentence) { misuse(std::move(sentence), out_.calls.size() - 1); }
  recording finish();

 private:
  /// The state of a lane: its last call, and the waits after it.
  struct queue {
    std::vector<int> last, waits;
  };
  const char* name(int lane) const { return where().lanes[static_cast<std::size_t>(lane)].name; }
  queue& on(int lane);
  void misuse(std::string sentence) { misuse(std::move(sentence), out_.calls.size()); }
  void misuse(std::string sentence, std::size_t at);

  const runtime::description& about_;
  const runtime::rank_row& row_;
  std::vector<queue> queues_;               // by lane
  std::map<int, std::vector<int>> events_;  // by event: the calls whose end it marks
  int acting_on_ = 0;
  std::string by_rows_;  // the function that is row-pipelined next; empty: none
  int by_rows_on_ = 0;   // its lane
  recording out_;
};

/// The bytes that an operand covers, from its address on.
struct shape {
  std::size_t run, runs = 1, pitch = 0;
};
/// Contiguous elements of type T; their number is the product of the sizes.
template <class T>
shape all(auto... sizes) {
  return {product(sizes...) * sizeof(T)};
}
/// An fp8 tensor with its transposed copy and scales.
inline shape fp8(std::size_t rows, std::size_t columns) {
  return {runtime::fp8_layout{rows, columns}.bytes()};
}
inline shape fp8_rows(std::size_t rows, std::size_t columns) {
  return {runtime::fp8_rows_layout{rows, columns}.bytes()};
}
/// Rows of `width` elements that begin `stride` elements apart.
template <class T>
shape columns(std::size_t rows, std::size_t width, int stride) {
  return {width * sizeof(T), rows, static_cast<std::size_t>(stride) * sizeof(T)};
}

/// Describes the call of a kernel: its operands in the order of its arguments.
class kernel {
 public:
  kernel(const auto& lane, const char* function) : c_(recorder::active().add(function, lane.index)) {}
  kernel& out(at o, shape s) { return operand(o, s, false, true); }
  kernel& in(at o, shape s) { return operand(o, s, true, false); }
  /// An output that is overwritten, or added to.
  kernel& sum(at o, bool adds, shape s) { return operand(o, s, adds, true); }
  kernel& with(const rankc::attention_setting& by) {
    c_.attention = by;
    return *this;
  }
  kernel& with(double number) {
    c_.number = number;
    return *this;
  }
  /// Ranges of a region with elements of this size.
  kernel& in(at region, std::size_t size, std::span<const runtime::range> ranges) {
    c_.operands.push_back(region.byte);
    return cover(region, size, ranges, c_.reads);
  }
  kernel& in_out(at region, std::size_t size, std::span<const runtime::range> ranges) {
    cover(region, size, ranges, c_.writes);
    return in(region, size, ranges);
  }
  /// Record the ranges that are router biases.
  kernel& moves(at weights, std::size_t size, std::span<const runtime::range> ranges) {
    for (const runtime::range& g : ranges)
      if (g.balances.any())
        c_.biases.push_back(
            {weights.byte + g.first * size, weights.byte + (g.first + g.count) * size, g.balances});
    return *this;
  }
  /// Memory that is written in addition to the operands.
  kernel& aside(at region, std::size_t size, std::span<const runtime::range> ranges) {
    return cover(region, size, ranges, c_.writes);
  }

 private:
  kernel& operand(at o, shape s, bool reads, bool writes) {
    c_.operands.push_back(o.byte);
    const area covered{o.byte, s.run, s.runs, s.pitch};
    if (reads) c_.reads.push_back(covered);
    if (writes) c_.writes.push_back(covered);
    return *this;
  }
  kernel& cover(at region, std::size_t size, std::span<const runtime::range> ranges,
                std::vector<area>& list) {
    c_.has_padding = true;
    for (const runtime::range& g : ranges) list.push_back({region.byte + g.first * size, g.count * size});
    return *this;
  }
  call& c_;
};

/// Rename the last call to a kernel that also takes the starts of documents.
void within_documents(const char* function, at starts, std::size_t count);
/// The same for a kernel that also has scratch of this size.
void within_documents(const char* function, at starts, std::size_t count, at scratch, std::size_t bytes);

}  // namespace translation
