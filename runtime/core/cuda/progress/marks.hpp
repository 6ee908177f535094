// SPDX-License-Identifier: Apache-2.0
// The position of a rank's GPU in its step. While the work runs, each lane stores a number at each action,
// and at the beginning and end of each communication. The host reads the numbers at any time, also while the
// GPU hangs. Collectives over tp between the kernels of a computing lane have no marks: they are part of
// their action. The collectives of the install are marked like those of step 0.
#pragma once
#include "kept_failure.hpp"
#include <rankc/runtime/cuda/rank.hpp>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace rankc::runtime::cuda {

class marks {
 public:
  /// The number of graphs of a rank.
  static constexpr std::size_t most_graphs = 3;

  /// Allocates the numbers of all lanes.
  /// Errors: failure (70) if there is no pinned memory.
  explicit marks(rank&);
  ~marks();
  marks(const marks&) = delete;
  marks& operator=(const marks&) = delete;

  /// Assigns the calls that follow to this graph; 0 is the graph of training steps.
  void enqueue(std::size_t graph);
  /// Marks the beginning of an action or a communication on a lane, and the end of everything begun on the
  /// lane before.
  /// Errors: failure (70) if the store of this mark, or of an earlier end, fails.
  void begin(const lane&, const char* name, int communicator = -1);
  /// Marks an end. A failed store is kept for the next call that throws, because destructors call this.
  void end(const lane&) noexcept;
  /// Record that an event is recorded on a lane, or waited for there.
  void record(const lane&, event);
  void wait(const lane&, event);

  /// Marks the beginning of a phase of the install.
  void begin_phase(const char* name);
  /// Records that the work of a graph has been enqueued without a capture, and runs.
  void run_enqueued();

  /// Record that a graph is about to be launched, and that it has ended.
  void launch(std::size_t graph, std::int64_t step);
  void finish() { words_->end_step(); }
  /// Updates the rank's progress words from the numbers of its GPU.
  /// Returns: the number of actions that lane 0 has begun.
  std::uint64_t follow();

  /// Moves the progress words to a place where others see them.
  void store_in(progress_words& where) { words_ = &where; }
  /// The position of the rank. Any thread may call it.
  rank_position look() const;
  /// The actions and communications that have begun and not ended, by lane: `compute: 0B1; reduce:
  /// "gradients" (communicator dp of ranks 0 and 1)`.
  std::string under_way() const;

 private:
  struct place {
    int lane;
    std::uint32_t entries;  // number of the lane's entries that come before
  };
  /// An action or a communication. Its lane waits for `after`: lane 0 within the action, other lanes before
  /// it.
  struct entry {
    const char* name;
    int communicator;       // -1: an action
    std::uint32_t actions;  // the lane's actions up to here
    std::vector<place> after;
  };
  struct graph {
    std::vector<std::vector<entry>> lanes;
    std::vector<std::vector<place>> waits;  // by lane: the waits of its next entry
  };

  std::uint32_t begun(int lane) const;  // number of entries
  std::uint32_t ended(int lane) const;
  bool is_done(const place&) const;
  const entry* awaited(const graph&, int& lane) const;
  std::string text_of(const entry&) const;
  void store(const lane&, std::uint32_t value);
  void hide();

  rank& rank_;
  volatile std::uint32_t* stored_ =
      nullptr;  // pinned: 2 n - 1 after entry n of a lane has begun, 2 n after its end
  graph graphs_[most_graphs];
  graph* enqueued_ = &graphs_[0];
  mutable std::mutex looking_;                   // held while another thread reads `launched_`
  std::atomic<const graph*> launched_{nullptr};  // null while calls are added to a graph
  std::atomic<std::uint64_t> launches_{0};
  std::vector<place> events_;  // by event: the place at which it was recorded
  kept_failure end_;
  std::uint32_t followed_ = 0;
  progress_words own_;
  progress_words* words_ = &own_;
};

/// True if the communications of a link are marked.
inline bool is_marked(const lane& on, const lane_link& k) {
  return on.of->place != nullptr && (!on.computes() || k.over != over::tp);
}

/// The communicator as text: "communicator dp of ranks 0 and 1".
std::string name_of(const communicator&);

/// Marks a communication during its lifetime.
class marked {
 public:
  marked(const lane& on, const lane_link& k, const char* name) : marked(on, k, name, is_marked(on, k)) {}
  marked(const lane& on, const lane_link& k, const char* name, bool is) : on_(on), is_(is) {
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

/// Enqueues a store that the host sees.
/// Errors: failure (70).
void store_mark(const lane&, volatile std::uint32_t* to, std::uint32_t value);

}  // namespace rankc::runtime::cuda
