// SPDX-License-Identifier: Apache-2.0
// The recorder behind the runtime's symbols: one at a time, of one rank.
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

/// The type of statistics and of parameters' gradients beside activations of type T.
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
  /// The rows of the next such call on a lane move beside a product.
  void move_by_rows(std::string function, int lane);
  communication meet(int lane, runtime::over, const runtime::message&, std::size_t bytes);
  void mark(int lane, runtime::event);
  void wait(int lane, runtime::event);
  void follow(int next, int before);
  /// From here to `leave` an action is on a lane, which all its calls must be on.
  void enter_action(int lane);
  void leave_action() { acting_on_ = 0; }
  /// A misuse of the runtime that the last call is, besides its bytes.
  void misuse_in_call(std::string sentence) { misuse(std::move(sentence), out_.calls.size() - 1); }
  recording finish();

 private:
  /// What has been put on a lane: its last call, and the waits after it.
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
  std::map<int, std::vector<int>> events_;  // what each stands for the end of
  int acting_on_ = 0;
  std::string by_rows_;  // the function whose rows are to move so; empty: none
  int by_rows_on_ = 0;   // its lane
  recording out_;
};

/// What an operand covers, from its beginning on.
struct shape {
  std::size_t run, runs = 1, pitch = 0;
};
/// Elements of type T, as many as the product of the sizes.
template <class T>
shape all(auto... sizes) {
  return {product(sizes...) * sizeof(T)};
}
/// A tensor of eight bits, with what is behind its elements.
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
  /// An output, overwritten or added to.
  kernel& sum(at o, bool adds, shape s) { return operand(o, s, adds, true); }
  kernel& with(const rankc::attention_setting& by) {
    c_.attention = by;
    return *this;
  }
  kernel& with(double number) {
    c_.number = number;
    return *this;
  }
  /// Ranges of a region whose elements have a size.
  kernel& in(at region, std::size_t size, std::span<const runtime::range> ranges) {
    c_.operands.push_back(region.byte);
    return cover(region, size, ranges, c_.reads);
  }
  kernel& in_out(at region, std::size_t size, std::span<const runtime::range> ranges) {
    cover(region, size, ranges, c_.writes);
    return in(region, size, ranges);
  }
  /// Those of the ranges that are moved by choices of experts.
  kernel& moves(at weights, std::size_t size, std::span<const runtime::range> ranges) {
    for (const runtime::range& g : ranges)
      if (g.balances.any())
        c_.biases.push_back(
            {weights.byte + g.first * size, weights.byte + (g.first + g.count) * size, g.balances});
    return *this;
  }
  /// What is written besides the operands.
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

/// The call described last is of another kernel, which is told of the starts of documents too.
void within_documents(const char* function, at starts, std::size_t count);
/// And has scratch of so many bytes.
void within_documents(const char* function, at starts, std::size_t count, at scratch, std::size_t bytes);

}  // namespace translation
