// SPDX-License-Identifier: Apache-2.0
// The times of a rank's step as bytes that one process sends to the others. Names are packed as text, not as
// addresses.
#pragma once
#include <rankc/runtime/engine.hpp>

#include <cstring>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rankc::runtime {

/// A time without its name. The name follows it.
struct packed_time {
  int rank, lane;
  std::size_t length;
  double begin, end;
};

inline std::string packed(std::span<const traced> times) {
  std::string out;
  for (const traced& t : times) {
    const packed_time head{t.rank, t.lane, std::strlen(t.name), t.begin, t.end};
    out.append(reinterpret_cast<const char*>(&head), sizeof head).append(t.name);
  }
  return out;
}

/// Appends the times that `packed` has packed. `names` owns the texts that the times refer to.
inline void unpack(std::string_view bytes, std::set<std::string>& names, std::vector<traced>& into) {
  while (!bytes.empty()) {
    packed_time head;
    std::memcpy(&head, bytes.data(), sizeof head);
    const std::string name(bytes.substr(sizeof head, head.length));
    bytes.remove_prefix(sizeof head + head.length);
    into.push_back({head.rank, head.lane, names.insert(name).first->c_str(), head.begin, head.end});
  }
}

}  // namespace rankc::runtime
