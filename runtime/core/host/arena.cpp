// SPDX-License-Identifier: Apache-2.0
// The memory of a rank, and the tables that it contains from the start.
#include "arena.hpp"

#include <rankc/runtime/engine.hpp>
#include <rankc/runtime/rope_angles.hpp>

#include <algorithm>
#include <cstring>
#include <new>

namespace rankc::runtime::host {

constexpr std::size_t guard_bytes = 64, alignment = 64;
constexpr std::byte guard_value{0xa5};

namespace {

std::byte* allocated(std::pmr::memory_resource& from, std::size_t bytes) try {
  return static_cast<std::byte*>(from.allocate(bytes, alignment));
} catch (const std::bad_alloc&) {
  throw runtime::failure(70, "RC5023: install: {} bytes of memory for an arena could not be allocated",
                         bytes);
}

}  // namespace

void arena::release::operator()(std::byte* p) const { memory->deallocate(p, bytes, alignment); }

arena::arena(std::size_t bytes, std::pmr::memory_resource* memory)
    : size_(bytes), bytes_(allocated(*memory, bytes + guard_bytes), {memory, bytes + guard_bytes}) {
  std::memset(data(), 0, size_);
  std::fill_n(data() + size_, guard_bytes, guard_value);
}

bool arena::intact() const {
  return std::all_of(data() + size_, data() + size_ + guard_bytes,
                     [](std::byte b) { return b == guard_value; });
}

void fill_rope(std::byte* arena, const runtime::rope_table& table, const runtime::chunks& has,
               runtime::dtype type) {
  std::byte* where = arena + table.where.byte;
  if (type == runtime::dtype::f64) fill_angles(reinterpret_cast<double*>(where), table, has);
  else fill_angles(reinterpret_cast<float*>(where), table, has);
}

}  // namespace rankc::runtime::host
