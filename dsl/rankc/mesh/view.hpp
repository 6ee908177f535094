// SPDX-License-Identifier: Apache-2.0
// A view factors the ranks into axes: a list of names, sizes and strides whose product is the number of
// ranks. Two views of the same ranks share an axis if its size and stride are equal, because these determine
// its groups.
#pragma once
#include <rankc/mesh/axis_lists.hpp>

#include <array>
#include <initializer_list>
#include <stdexcept>
#include <vector>

namespace rankc {

/// The axes that views are made of.
using mesh_axis = axis;
inline constexpr auto& mesh_axis_names = axis_names;

/// A number of ranks along an axis, at least 1. A lower number does not compile, or throws.
class degree {
 public:
  constexpr degree() = default;
  constexpr degree(int n) : n_(n) {
    if (n < 1) throw std::invalid_argument("a degree is at least 1");
  }
  constexpr operator int() const { return n_; }

 private:
  int n_ = 1;
};

/// An axis of a view. Neighbours along it are `stride` ranks apart.
struct axis_extent {
  mesh_axis axis{};
  degree size{};
  int stride = 1;
  constexpr bool operator==(const axis_extent&) const = default;
  constexpr int index_of(int rank) const { return rank / stride % size; }
};

/// A factorization of `span` ranks, outermost axis first. Every rank has exactly one index along every axis.
class view {
 public:
  constexpr view() = default;
  /// Strides follow from the sizes: the last axis has stride 1.
  constexpr view(std::initializer_list<axis_extent> sizes)
      : view(sizes.begin(), static_cast<int>(sizes.size())) {}
  constexpr view(const axis_extent* sizes, int count) : count_(count) {
    for (int i = 0; i < count; ++i) axes_[static_cast<std::size_t>(i)] = sizes[i];
    for (int i = count_; i-- > 0; span_ *= axes_[static_cast<std::size_t>(i)].size)
      axes_[static_cast<std::size_t>(i)].stride = span_;
  }
  constexpr const axis_extent* begin() const { return axes_.data(); }
  constexpr const axis_extent* end() const { return axes_.data() + count_; }
  constexpr int span() const { return span_; }
  constexpr const axis_extent* find(mesh_axis a) const {
    for (const axis_extent& x : *this)
      if (x.axis == a) return &x;
    return nullptr;
  }

 private:
  std::array<axis_extent, detail::lists.listed.count> axes_{};
  int count_ = 0, span_ = 1;
};

/// The first axis of both views that differs in size or stride; null if there is none.
constexpr const axis_extent* first_unequal_axis(const view& a, const view& b) {
  for (const axis_extent& x : a)
    if (const axis_extent* y = b.find(x.axis); y && *y != x) return &x;
  return nullptr;
}

}  // namespace rankc
