// SPDX-License-Identifier: Apache-2.0
// Where a rank's GPU is in its step: as its graph runs, each lane stores at each action, and at the beginning
// and end of each communication, how far it has come. The host reads that at any time, also where the GPU
// hangs. Collectives over tp that a computing lane has between its kernels are too many for that: they are
// part of their action.
#pragma once
#include <rankc/runtime/cuda/rank.hpp>

#include <atomic>
#include <cstdint>
#include <vector>

namespace rankc::runtime::cuda {

class marks {
 public:
  /// How many graphs a rank has.
  static constexpr std::size_t most_graphs = 3;

  /// Errors: failure (70) where there is no pinned memory for what lanes store.
  explicit marks(rank&);
  ~marks();
  marks(const marks&) = delete;
  marks& operator=(const marks&) = delete;

  /// What is enqueued from now on is of this graph; 0 is that of training steps.
  void enqueue(std::size_t graph);
  /// An action, or a communication, begins on a lane; all that the lane holds ends.
  void begin(const lane&, const char* name, int communicator = -1);
  void end(const lane&);
  /// An event is recorded on a lane, or waited for there.
  void record(const lane&, event);
  void wait(const lane&, event);

  /// A graph is about to be launched, and has ended.
  void launch(std::size_t graph, std::int64_t step);
  void finish() { words_->end_step(); }
  /// Bring the rank's words up to date with what its GPU has stored. Returns how many actions lane 0 has
  /// begun.
  std::uint64_t follow();

  /// Where others see them, instead of here.
  void store_in(progress_words& where) { words_ = &where; }
  /// What the rank does; from any thread.
  standing look() const;

 private:
  struct place {
    int lane;
    std::uint32_t entries;  // of the lane, all of which come before
  };
  /// An action or a communication. `after` is what its lane waits for: on lane 0 since it began, on others
  /// before.
  struct entry {
    const char* name;
    int communicator;       // -1: an action
    std::uint32_t actions;  // of the lane, up to here
    std::vector<place> after;
  };
  struct graph {
    std::vector<std::vector<entry>> lanes;
    std::vector<std::vector<place>> waits;  // by lane: of what comes next there
  };

  std::uint32_t begun(int lane) const;  // entries
  std::uint32_t ended(int lane) const;
  bool is_done(const place&) const;
  const entry* awaited(const graph&, int& lane) const;
  void store(const lane&, std::uint32_t value);

  rank& rank_;
  volatile std::uint32_t* stored_ =
      nullptr;  // pinned: 2 n - 1 where entry n of a lane has begun, 2 n where it has ended
  graph graphs_[most_graphs];
  graph* enqueued_ = &graphs_[0];
  std::atomic<const graph*> launched_{&graphs_[0]};
  std::atomic<std::uint64_t> launches_{0};
  std::vector<place> events_;  // by event: where it was recorded
  std::uint32_t followed_ = 0;
  progress_words own_;
  progress_words* words_ = &own_;
};

/// Whether the communications of a link are marked.
inline bool is_marked(const lane& on, const lane_link& k) {
  return on.of->place != nullptr && (!on.computes() || k.over != over::tp);
}

/// A communication, as long as this lives.
class marked {
 public:
  marked(const lane& on, const lane_link& k, const char* name) : on_(on), is_(is_marked(on, k)) {
    if (is_) on_.of->place->begin(on_, name, k.communicator);
  }
  ~marked() {
    if (is_) on_.of->place->end(on_);
  }
  marked(const marked&) = delete;
  marked& operator=(const marked&) = delete;

 private:
  const lane& on_;
  const bool is_;
};

/// Enqueue a store that the host sees.
void store_mark(const lane&, volatile std::uint32_t* to, std::uint32_t value);

}  // namespace rankc::runtime::cuda
