// SPDX-License-Identifier: Apache-2.0
// The position of a rank in its step. The rank stores it without locks, and other threads and processes read
// it at any time.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace rankc::runtime {

/// The name of the current action: its first 15 letters. One thread stores it. Readers in other threads and
/// processes always see a complete name, even if the storing process was killed.
class action_name {
 public:
  /// A name with its number, which grows with each store.
  struct numbered {
    std::string name;
    std::uint64_t number;
  };

  void store(const char* text) {
    words of_name{};
    std::memcpy(of_name.data(), text, std::min(std::strlen(text), most_letters));
    const std::uint64_t number = number_.load(std::memory_order_relaxed) + 1;
    for (std::size_t i = 0; i < of_name.size(); ++i)
      names_[number % 2][i].store(of_name[i], std::memory_order_release);
    number_.store(number, std::memory_order_release);
  }

  /// A store writes over the older of the two names. A name is complete if no store has ended while it was
  /// read.
  numbered load() const {
    for (;;) {
      const std::uint64_t number = number_.load(std::memory_order_acquire);
      words of_name;
      for (std::size_t i = 0; i < of_name.size(); ++i)
        of_name[i] = names_[number % 2][i].load(std::memory_order_acquire);
      if (number_.load(std::memory_order_relaxed) != number) continue;
      char letters[most_letters + 1];
      std::memcpy(letters, of_name.data(), sizeof letters);
      return {letters, number};
    }
  }

 private:
  static constexpr std::size_t most_letters = 15;
  using words = std::array<std::uint64_t, 2>;  // the letters and a zero

  std::atomic<std::uint64_t> number_{0};
  std::atomic<std::uint64_t> names_[2][2]{};  // the last one is at number_ % 2
};

/// The position of a rank. One thread stores it; other threads and processes read it at any time.
struct progress_words {
  std::atomic<std::int64_t> step{0};    // the last step that has begun
  std::atomic<std::uint64_t> calls{0};  // issued in this step
  action_name action;
  std::atomic<std::uint32_t> in_step{0};

  void begin_step(std::int64_t number) {
    name("");
    calls.store(0, std::memory_order_relaxed);
    step.store(number, std::memory_order_relaxed);
    in_step.store(1, std::memory_order_relaxed);
  }
  void end_step() { in_step.store(0, std::memory_order_relaxed); }
  void count() { calls.store(calls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }
  void name(const char* text) { action.store(text); }
};

/// The position of a rank at one moment. `moved` changes whenever the rank makes progress.
struct rank_position {
  std::int64_t step = 0;
  std::uint64_t calls = 0;
  std::string action;
  bool in_step = false;
  bool waits = false;        // waits for other ranks
  std::string awaited;       // `all_reduce "loss" (message 3, 64 bytes, f64, sum) on reduce`
  std::vector<int> with;     // the other ranks of that communication; empty: only the coordinator knows them
  int communicator = -1;     // the communicator of that communication
  std::uint64_t number = 0;  // the number of that call among the communicator's calls
  std::vector<std::pair<int, std::uint64_t>> carried;  // completed calls by communicator of this rank
  std::vector<std::uint64_t> moved;

  /// The position as text: "in step 12 at 1B3, op 57"; "between steps, after step 12, op 412"; "before the
  /// first step".
  std::string text() const;
};

/// The part of a position that `progress_words` contains.
inline rank_position position_of(const progress_words& w) {
  rank_position s;
  s.step = w.step.load(std::memory_order_relaxed);
  s.calls = w.calls.load(std::memory_order_relaxed);
  s.in_step = w.in_step.load(std::memory_order_relaxed) != 0;
  const action_name::numbered last = w.action.load();
  s.action = last.name;
  s.moved = {static_cast<std::uint64_t>(s.step), s.calls, s.in_step, last.number};
  return s;
}

inline std::string rank_position::text() const {
  if (!in_step && step == 0) return "before the first step";
  const std::string number = std::to_string(step);
  if (!in_step) return "between steps, after step " + number + ", op " + std::to_string(calls);
  return "in step " + number + (action.empty() ? "" : " at " + action) + ", op " + std::to_string(calls);
}

}  // namespace rankc::runtime
