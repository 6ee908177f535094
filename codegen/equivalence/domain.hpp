// SPDX-License-Identifier: Apache-2.0
// Which elements of an axis: intervals, of which there are few as a rule.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "term.hpp"

namespace rankc::codegen::algebra {

/// A list whose first members need no memory of their own.
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

/// Elements in the order in which they lie in a buffer, or a set of them in increasing order. Neighbours are
/// joined.
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

  /// Of a set: those of an axis of so many elements that are not in it.
  runs gaps(std::int64_t size) const;
  /// Elements [from, from + length) of the list.
  runs slice(std::int64_t from, std::int64_t length) const;
  runs shifted(std::int64_t by) const;
  /// Those of the list that are less than `end`.
  runs below(std::int64_t end) const;
  /// Of whole units of so many elements: the units, or the other way.
  /// Errors: false where a run does not begin and end with a unit.
  bool to_units(std::int64_t unit, runs& out) const;
  runs from_units(std::int64_t unit) const;
  /// As a set. Errors: false where an element is there twice, which is in `twice`.
  bool sort(interval& twice);
  /// The union of two sets. Errors: false where they have elements in common, some of which are in `twice`.
  bool unite(const runs& with, interval& twice);
  /// Whether `other` is this list, each element of it increased by one number.
  bool is_shifted(const runs& other, std::int64_t& by) const;

 private:
  few<interval, 1> at_;
};

/// The elements of an axis that a buffer holds, of so many that there are.
struct part {
  runs at;
  std::int64_t size = 0;
  term arranged = zero;  // not zero: they lie in this order, and only all of them are known
  bool is_whole() const { return at.is(0, size); }
  bool is_arranged() const { return !arranged.is_zero(); }
  bool operator==(const part&) const = default;
};

/// The letter of a parameter's rows where the sum of its gradient's squares is over them.
inline constexpr char rows_of_parameter = 'r';

std::string axis_name(char letter);
/// "tokens 0..511 and 1024..1535"
std::string text_of(char letter, const runs&);

}  // namespace rankc::codegen::algebra
