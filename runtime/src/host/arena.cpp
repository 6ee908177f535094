// SPDX-License-Identifier: Apache-2.0
// Memory of a rank, and the tables that are in it from the start.
#include "arena.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace rankc::host {

constexpr std::size_t guard_bytes = 64;
constexpr std::byte guard_value{0xa5};

arena::arena(std::size_t bytes)
    : size_(bytes), bytes_(static_cast<std::byte*>(::operator new[](bytes + guard_bytes, alignment))) {
  std::memset(data(), 0, size_);
  std::fill_n(data() + size_, guard_bytes, guard_value);
}

bool arena::intact() const {
  return std::all_of(data() + size_, data() + size_ + guard_bytes,
                     [](std::byte b) { return b == guard_value; });
}

namespace {

template <class T>
void fill_angles(T* cosines, const runtime::rope_table& table, const runtime::chunks& has) {
  const int half = table.dim / 2;
  T* sines = cosines + static_cast<std::size_t>(table.positions) * half;
  for (int place = 0; place < table.positions; ++place)
    for (int j = 0; j < half; ++j) {
      const double angle = has.position(place) * std::pow(table.theta, -2.0 * j / table.dim);
      *cosines++ = static_cast<T>(std::cos(angle));
      *sines++ = static_cast<T>(std::sin(angle));
    }
}

}  // namespace

void fill_rope(std::byte* arena, const runtime::rope_table& table, const runtime::chunks& has, runtime::dtype type) {
  std::byte* where = arena + table.where.byte;
  if (type == runtime::dtype::f64) fill_angles(reinterpret_cast<double*>(where), table, has);
  else fill_angles(reinterpret_cast<float*>(where), table, has);
}

}  // namespace rankc::host
