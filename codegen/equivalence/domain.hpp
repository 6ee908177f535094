// SPDX-License-Identifier: Apache-2.0
// Sets of elements of an axis, as intervals. Most have few.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "term.hpp"

namespace rankc::codegen::algebra {

/// A list whose first N members need no heap memory.
template <class T, int N>
class few {
 public:
  few() = default;
  few(const few& other)
      : near_(other.near_),
        far_(other.far_ ? std::make_unique<std::vector<T>>(*other.far_) : nullptr),
        n_(other.n_) {}
  few(few&&) noexcept = default;
  few& operator=(const few& other) {
    near_ = other.near_;
    far_ = other.far_ ? std::make_unique<std::vector<T>>(*other.far_) : nullptr;
    n_ = other.n_;
    return *this;
  }
  few& operator=(few&&) noexcept = default;
  ~few() = default;

  int size() const { return n_; }
  bool empty() const { return n_ == 0; }
  T& operator[](int i) {
    return i < N ? near_[static_cast<std::size_t>(i)] : (*far_)[static_cast<std::size_t>(i - N)];
  }
  const T& operator[](int i) const {
    return i < N ? near_[static_cast<std::size_t>(i)] : (*far_)[static_cast<std::size_t>(i - N)];
  }
  T& back() { return (*this)[n_ - 1]; }
  const T& back() const { return (*this)[n_ - 1]; }
  void push_back(T x) {
    if (n_ < N) {
      near_[static_cast<std::size_t>(n_)] = std::move(x);
    } else {
      if (!far_) far_ = std::make_unique<std::vector<T>>();
      far_->push_back(std::move(x));
    }
    ++n_;
  }
  void erase(int at) {
    for (int i = at; i + 1 < n_; ++i) (*this)[i] = std::move((*this)[i + 1]);
    if (n_ > N) far_->pop_back();
    --n_;
  }
  void clear() {
    far_ = nullptr;
    n_ = 0;
  }
  bool operator==(const few& other) const {
    if (n_ != other.n_) return false;
    for (int i = 0; i < n_; ++i)
      if (!((*this)[i] == other[i])) return false;
    return true;
  }

 private:
  std::array<T, static_cast<std::size_t>(N)> near_{};
  std::unique_ptr<std::vector<T>> far_;
  int n_ = 0;
};

/// Elements [begin, end).
struct interval {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
  bool operator==(const interval&) const = default;
};

/// Elements in the order in which a buffer holds them, or a set of elements in increasing order. Adjacent
/// intervals are joined.
class runs {
 public:
  runs() = default;
  runs(std::int64_t begin, std::int64_t end) { append(interval{begin, end}); }

  int count() const { return at_.size(); }
  const interval& operator[](int i) const { return at_[i]; }
  bool operator==(const runs&) const = default;
  bool is(std::int64_t begin, std::int64_t end) const {
    return at_.size() == 1 && at_[0] == interval{begin, end};
  }
  std::int64_t size() const;
  void append(interval);
  void append(const runs&);

  /// The elements of an axis of `size` elements that the set lacks.
  runs gaps(std::int64_t size) const;
  /// Elements [from, from + length) of the list.
  runs slice(std::int64_t from, std::int64_t length) const;
  runs shifted(std::int64_t by) const;
  /// The elements that are less than `end`.
  runs below(std::int64_t end) const;
  /// Converts elements to the units of `unit` elements that they form, and back.
  /// Errors: false where a run does not begin and end at a unit.
  bool to_units(std::int64_t unit, runs& out) const;
  runs from_units(std::int64_t unit) const;
  /// Sorts the list into a set.
  /// Errors: false where an element occurs twice; `twice` has such elements.
  bool sort(interval& twice);
  /// Unites two sets.
  /// Errors: false where they have elements in common; `twice` has some of these.
  bool unite(const runs& with, interval& twice);
  /// Whether `other` is this list with each element increased by `by`.
  bool is_shifted(const runs& other, std::int64_t& by) const;

 private:
  few<interval, 1> at_;
};

/// The elements of an axis that a buffer holds. `size`: the size of the axis.
struct part {
  runs at;
  std::int64_t size = 0;
  term arranged = zero;  // the order of expert slots, which data determine; zero: the order of `at`
  bool is_whole() const { return at.is(0, size); }
  bool is_arranged() const { return !arranged.is_zero(); }
  bool operator==(const part&) const = default;
};

/// The letter of a parameter's rows as the axis over which the squares of its gradient are summed.
inline constexpr char rows_of_parameter = 'r';

std::string axis_name(char letter);
/// "tokens 0..511 and 1024..1535"
std::string text_of(char letter, const runs&);

}  // namespace rankc::codegen::algebra
