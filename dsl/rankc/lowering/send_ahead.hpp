// SPDX-License-Identifier: Apache-2.0
// Overlaps the messages of a ring with computation. A message is sent before the op that uses the values it
// sends, and awaited before the first use of what arrives. Its buffers stay allocated in between.
#pragma once
#include <rankc/lowering/select.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace rankc::lowering {

namespace detail {

/// Moves a message before the first earlier op that reads the values it sends. It also moves before adjacent
/// messages that do not make these values. Otherwise a wait for an earlier message would include a wait for
/// those.
constexpr void move_ahead(nodes& list, std::size_t begin, std::size_t at) {
  const auto reads_alike = [&](const node& n) {
    bool any = false;
    list[at].each_read([&](const port_use& u) { any |= n.reads(u.at); });
    return any && !n.is_beside();
  };
  const auto makes_it = [&](const node& n) {
    bool any = false;
    list[at].each_read([&](const port_use& u) {
      n.each_write([&](const port_use& w) { any |= w.at.value == u.at.value; });
    });
    return any;
  };
  std::size_t to = at;
  for (std::size_t i = at; i-- > begin && !makes_it(list[i]);)
    if (reads_alike(list[i])) to = i;
  while (to > begin && list[to - 1].is_beside() && !makes_it(list[to - 1])) --to;
  move_node(list, at, to);
}

/// Sets `joins` on the first op that touches an incoming message: it waits for every message in flight. A new
/// message also waits if an op ran since the earlier ones, because waiting for one message waits for the
/// later ones too.
constexpr void wait_for_messages(nodes& list, std::size_t begin, std::size_t end) {
  std::vector<int> coming;
  for (std::size_t i = begin; i < end; ++i) {
    for (int v : coming) list[i].joins |= list[i].mentions(v);
    list[i].joins |= !coming.empty() && list[i].is_beside() && !list[i - 1].is_beside();
    if (list[i].joins) coming.clear();
    if (list[i].is_beside()) list[i].each_write([&](const port_use& u) { coming.push_back(u.at.value); });
  }
  for (std::size_t i = end; !coming.empty() && i-- > begin;)
    if (list[i].is_beside())
      throw not_lowered{list[i].row, true, list[i].over};  // this phase does not use what arrives
}

}  // namespace detail

/// Applies the pass to each phase separately, because each phase becomes one function.
/// Errors: not_lowered if nothing in a phase uses a message sent in it.
constexpr void send_ahead(layer_program& p) {
  const auto section = [](nodes& list, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      if (list[i].is_beside()) detail::move_ahead(list, begin, i);
    detail::wait_for_messages(list, begin, end);
  };
  section(p.forward, 0, p.forward.size());
  p.each_phase_of_backward([&](std::size_t begin, std::size_t end) { section(p.backward, begin, end); });
}

}  // namespace rankc::lowering
