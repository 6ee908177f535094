// SPDX-License-Identifier: Apache-2.0
// Where a rank is in its step: words that it stores as it goes, without locks, and what is said of them.
#pragma once
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace rankc::runtime {

/// The words of a thread of a rank. One thread stores; others, and other processes, read at any time.
struct progress_words {
  std::atomic<std::int64_t> step{0};       // the last that has begun
  std::atomic<std::uint64_t> calls{0};     // that have been issued in it
  std::atomic<std::uint64_t> action[2]{};  // the first 15 letters of its name
  std::atomic<std::uint32_t> in_step{0};

  void begin_step(std::int64_t number) {
    name("");
    calls.store(0, std::memory_order_relaxed);
    step.store(number, std::memory_order_relaxed);
    in_step.store(1, std::memory_order_relaxed);
  }
  void end_step() { in_step.store(0, std::memory_order_relaxed); }
  void count() { calls.store(calls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }
  void name(const char* text) {
    char letters[16]{};
    std::strncpy(letters, text, sizeof letters - 1);
    std::uint64_t words[2];
    std::memcpy(words, letters, sizeof words);
    for (const int i : {0, 1}) action[i].store(words[i], std::memory_order_relaxed);
  }
};

/// What a rank does, as it is asked. `moved` changes whenever the rank gets on.
struct standing {
  std::int64_t step = 0;
  std::uint64_t calls = 0;
  std::string action;
  bool in_step = false;
  bool waits = false;        // for other ranks
  std::string awaited;       // `all_reduce "loss" (message 3, 64 bytes, f64, sum) on reduce`
  std::vector<int> with;     // who takes part in that besides this rank; empty: the coordinator knows
  int communicator = -1;     // that carries it, as
  std::uint64_t number = 0;  // its how many-th
  std::vector<std::pair<int, std::uint64_t>> carried;  // by communicator of this rank: how many are done
  std::vector<std::uint64_t> moved;

  /// "in step 12 at 1B3, op 57"; "between steps, after step 12, op 412"; "before the first step"
  std::string text() const;
};

/// What the words alone say.
inline standing standing_of(const progress_words& w) {
  standing s;
  s.step = w.step.load(std::memory_order_relaxed);
  s.calls = w.calls.load(std::memory_order_relaxed);
  s.in_step = w.in_step.load(std::memory_order_relaxed) != 0;
  std::uint64_t words[2];
  for (const int i : {0, 1}) words[i] = w.action[i].load(std::memory_order_relaxed);
  char letters[sizeof words + 1]{};
  std::memcpy(letters, words, sizeof words);
  s.action = letters;
  s.moved = {static_cast<std::uint64_t>(s.step), s.calls, s.in_step, words[0], words[1]};
  return s;
}

inline std::string standing::text() const {
  if (!in_step && step == 0) return "before the first step";
  const std::string number = std::to_string(step);
  if (!in_step) return "between steps, after step " + number + ", op " + std::to_string(calls);
  return "in step " + number + (action.empty() ? "" : " at " + action) + ", op " + std::to_string(calls);
}

}  // namespace rankc::runtime
