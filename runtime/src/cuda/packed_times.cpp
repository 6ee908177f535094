// SPDX-License-Identifier: Apache-2.0
#include "packed_times.hpp"

#include <cstring>

namespace rankc::cuda {
namespace {

/// A time without its name, which follows it in `words` words.
struct head {
  int rank, lane, length, words;
  double begin, end;
};
static_assert(sizeof(head) % sizeof(float) == 0);

}  // namespace

std::vector<float> packed(std::span<const runtime::traced> times) {
  std::vector<float> out;
  for (const runtime::traced& t : times) {
    const std::size_t length = std::strlen(t.name), words = (length + sizeof(float) - 1) / sizeof(float);
    const head h{t.rank, t.lane, static_cast<int>(length), static_cast<int>(words), t.begin, t.end};
    const std::size_t at = out.size();
    out.resize(at + sizeof h / sizeof(float) + words);
    std::memcpy(out.data() + at, &h, sizeof h);
    std::memcpy(out.data() + at + sizeof h / sizeof(float), t.name, length);
  }
  return out;
}

void unpack(std::span<const float> words, std::set<std::string>& names, std::vector<runtime::traced>& into) {
  while (!words.empty()) {
    head h;
    std::memcpy(&h, words.data(), sizeof h);
    words = words.subspan(sizeof h / sizeof(float));
    std::string name(static_cast<std::size_t>(h.length), '\0');
    std::memcpy(name.data(), words.data(), name.size());
    words = words.subspan(static_cast<std::size_t>(h.words));
    into.push_back({h.rank, h.lane, names.insert(std::move(name)).first->c_str(), h.begin, h.end});
  }
}

}  // namespace rankc::cuda
