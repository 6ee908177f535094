// SPDX-License-Identifier: Apache-2.0
// Messages around a ring overlap with computation: a message is sent before the op that reads the sent value,
// and waited for before the first op that reads the received one. In between its operands keep their places.
#pragma once
#include <rankc/lowering/select.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace rankc::lowering {

namespace detail {

/// A message goes up, before the first op in front of it that reads what it sends too, and before messages
/// there that are not what it sends: it may wait for one that came before these.
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

/// Where an op touches what a message brings, those that are under way are waited for; so they are before
/// another begins, if they had an op beside them: who waits for one waits for those after it too.
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
      throw not_lowered{list[i].row, true, list[i].over};  // what comes is not for this phase
}

}  // namespace detail

/// Within each phase, whose ops one function calls.
/// Errors: not_lowered where nothing in a phase uses what is handed on in it.
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
