// SPDX-License-Identifier: Apache-2.0
// Moves the data of a communication that all partners have posted.
#include "transfer.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace rankc::runtime::host {

bool agree(const op& a, const op& b) {
  const bool pair = (a.kind == op_kind::send && b.kind == op_kind::receive) ||
                    (a.kind == op_kind::receive && b.kind == op_kind::send);
  const bool alike = a.kind == b.kind && a.kind != op_kind::send && a.kind != op_kind::receive;
  return (pair || alike) && a.plan_hash == b.plan_hash && a.what.index == b.what.index &&
         std::string_view(a.what.name) == b.what.name && a.count == b.count &&
         a.second_count == b.second_count && a.element == b.element && a.type == b.type &&
         a.reduce == b.reduce;
}

std::size_t extent(std::span<op* const> members) {
  const op& any = *members.front();
  const bool in_parts = any.kind == op_kind::all_gather || any.kind == op_kind::reduce_scatter ||
                        any.kind == op_kind::all_to_all;
  return in_parts ? any.count * members.size() : any.count;
}

namespace {

constexpr std::size_t block = 2048;  // elements reduced at a time; they fit into the L1 cache

template <class T>
void combine(T* into, const T* with, std::size_t count, reduction how) {
  if (how == reduction::sum) {
#pragma omp simd
    for (std::size_t i = 0; i < count; ++i) into[i] += with[i];
  } else {
#pragma omp simd
    for (std::size_t i = 0; i < count; ++i) into[i] = into[i] < with[i] ? with[i] : into[i];
  }
}

// Reduces elements [first, last) of all inputs in member order, block by block. `store` takes the elements,
// the index of the first and their number.
template <class T, class Store>
void reduce_blocks(std::span<op* const> members, std::size_t first, std::size_t last, Store store) {
  T result[block];
  for (std::size_t i = first; i < last; i += block) {
    const std::size_t count = std::min(block, last - i);
    std::memcpy(result, reinterpret_cast<const T*>(members[0]->from) + i, count * sizeof(T));
    for (const op* m : members.subspan(1))
      combine(result, reinterpret_cast<const T*>(m->from) + i, count, m->reduce);
    store(result, i, count);
  }
}

template <class T>
void reduce_all(std::span<op* const> members, std::size_t first, std::size_t last) {
  reduce_blocks<T>(members, first, last, [&](const T* result, std::size_t i, std::size_t count) {
    for (const op* m : members) std::memcpy(reinterpret_cast<T*>(m->to) + i, result, count * sizeof(T));
  });
}

// Visits the parts of flat elements [first, last) of a (group, part) array: member, start in its part, number
// of elements.
template <class Visit>
void for_each_part(std::size_t part, std::size_t first, std::size_t last, Visit visit) {
  for (std::size_t i = first; i < last;) {
    const std::size_t member = i / part, begin = i % part, count = std::min(part - begin, last - i);
    visit(member, begin, count);
    i += count;
  }
}

template <class T>
void scatter_sums(std::span<op* const> members, std::size_t first, std::size_t last) {
  const std::size_t part = members[0]->count;
  for_each_part(part, first, last, [&](std::size_t member, std::size_t begin, std::size_t parts) {
    T* to = reinterpret_cast<T*>(members[member]->to);
    const std::size_t start = member * part;
    reduce_blocks<T>(members, start + begin, start + begin + parts,
                     [&](const T* result, std::size_t i, std::size_t count) {
                       std::memcpy(to + (i - start), result, count * sizeof(T));
                     });
  });
}

void gather(std::span<op* const> members, std::size_t first, std::size_t last) {
  const std::size_t part = members[0]->count, element = members[0]->element;
  for_each_part(part, first, last, [&](std::size_t member, std::size_t begin, std::size_t count) {
    const std::byte* from = members[member]->from + begin * element;
    for (const op* m : members) {
      std::byte* to = m->to + (member * part + begin) * element;
      if (to != from) std::memcpy(to, from, count * element);
    }
  });
}

// Moves the same elements of every block that a member sends to another.
void exchange(std::span<op* const> members, std::size_t first, std::size_t last) {
  const std::size_t part = members[0]->count, element = members[0]->element;
  for_each_part(part, first, last, [&](std::size_t giver, std::size_t begin, std::size_t count) {
    for (std::size_t taker = 0; taker < members.size(); ++taker)
      std::memcpy(members[taker]->to + (giver * part + begin) * element,
                  members[giver]->from + (taker * part + begin) * element, count * element);
  });
}

// Sends elements [first, last) of the two tensors, counted through both, from each member to its neighbour.
void hand_on(std::span<op* const> members, std::size_t first, std::size_t last) {
  const op& any = *members.front();
  const std::size_t n = members.size(), ahead = any.count - any.second_count, element = any.element,
                    middle = std::clamp(ahead, first, last);
  for (std::size_t taker = 0; taker < n; ++taker) {
    const std::size_t giver = (taker + (any.kind == op_kind::shift ? n - 1 : 1)) % n;
    const op &to = *members[taker], &from = *members[giver];
    if (first < middle)
      std::memcpy(to.to + first * element, from.from + first * element, (middle - first) * element);
    if (middle < last)
      std::memcpy(to.second_to + (middle - ahead) * element, from.second_from + (middle - ahead) * element,
                  (last - middle) * element);
  }
}

}  // namespace

void reduce_into(std::byte* to, std::span<op* const> members, std::size_t count) {
  const auto store = [&]<class T>(const T* result, std::size_t i, std::size_t some) {
    std::memcpy(reinterpret_cast<T*>(to) + i, result, some * sizeof(T));
  };
  if (members[0]->type == dtype::f64) reduce_blocks<double>(members, 0, count, store);
  else reduce_blocks<float>(members, 0, count, store);
}

void move_elements(std::span<op* const> members, std::size_t first, std::size_t last) {
  const op& any = *members.front();
  switch (any.kind) {
    case op_kind::wait:
    case op_kind::work:
      break;
    case op_kind::send:
    case op_kind::receive: {
      const bool sends = any.kind == op_kind::send;
      std::memcpy(members[sends ? 1 : 0]->to + first, members[sends ? 0 : 1]->from + first, last - first);
      break;
    }
    case op_kind::all_reduce:
      any.type == dtype::f64 ? reduce_all<double>(members, first, last)
                             : reduce_all<float>(members, first, last);
      break;
    case op_kind::all_gather:
      gather(members, first, last);
      break;
    case op_kind::reduce_scatter:
      any.type == dtype::f64 ? scatter_sums<double>(members, first, last)
                             : scatter_sums<float>(members, first, last);
      break;
    case op_kind::all_to_all:
      exchange(members, first, last);
      break;
    case op_kind::shift:
    case op_kind::shift_back:
      hand_on(members, first, last);
      break;
  }
}

}  // namespace rankc::runtime::host
