// SPDX-License-Identifier: Apache-2.0
// The position of a rank's GPU in its step. While the work runs, each lane stores a number at each action,
// and at the beginning and end of each communication. The host reads the numbers at any time, also while the
// GPU hangs. Collectives over tp between the kernels of a computing lane have no marks: they are part of
// their action. The collectives of the install are marked alike, as those of step 0.
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
  /// How many graphs a rank has.
  static constexpr std::size_t most_graphs = 3;

  /// Errors: failure (70) where there is no pinned memory for what lanes store.
  explicit marks(rank&);
  ~marks();
  marks(const marks&) = delete;
  marks& operator=(const marks&) = delete;

  /// The calls that follow belong to this graph; 0 is the graph of training steps.
  void enqueue(std::size_t graph);
  /// An action, or a communication, begins on a lane; everything that the lane has begun ends.
  /// Errors: failure (70) where the store of this mark, or of an end before it, fails.
  void begin(const lane&, const char* name, int communicator = -1);
  /// The failure of its store is kept for the next call that throws: destructors call this.
  void end(const lane&) noexcept;
  /// An event is recorded on a lane, or waited for there.
  void record(const lane&, event);
  void wait(const lane&, event);

  /// A phase of the install begins.
  void begin_phase(const char* name);
  /// The work of a graph has been enqueued without a capture, and runs.
  void run_enqueued();

  /// A graph is about to be launched, and has ended.
  void launch(std::size_t graph, std::int64_t step);
  void finish() { words_->end_step(); }
  /// Bring the rank's words up to date with the numbers of its GPU. Returns: the number of actions that lane
  /// 0 has begun.
  std::uint64_t follow();

  /// Keep the words there, where others see them.
  void store_in(progress_words& where) { words_ = &where; }
  /// The standing of the rank; may be called by any thread.
  standing look() const;
  /// The actions and communications that have begun and not ended, by lane:
  /// `compute: 0B1; reduce: "gradients" (communicator dp of ranks 0 and 1)`.
  std::string under_way() const;

 private:
  struct place {
    int lane;
    std::uint32_t entries;  // of the lane, all of which come before
  };
  /// An action or a communication. Its lane waits for `after`: lane 0 since it began, other lanes before.
  struct entry {
    const char* name;
    int communicator;       // -1: an action
    std::uint32_t actions;  // of the lane, up to here
    std::vector<place> after;
  };
  struct graph {
    std::vector<std::vector<entry>> lanes;
    std::vector<std::vector<place>> waits;  // by lane: of the entry that comes next there
  };

  std::uint32_t begun(int lane) const;  // entries
  std::uint32_t ended(int lane) const;
  bool is_done(const place&) const;
  const entry* awaited(const graph&, int& lane) const;
  std::string text_of(const entry&) const;
  void store(const lane&, std::uint32_t value);
  void hide();

  rank& rank_;
  volatile std::uint32_t* stored_ =
      nullptr;  // pinned: 2 n - 1 where entry n of a lane has begun, 2 n where it has ended
  graph graphs_[most_graphs];
  graph* enqueued_ = &graphs_[0];
  mutable std::mutex looking_;                   // held while another thread reads `launched_`
  std::atomic<const graph*> launched_{nullptr};  // null while calls are added to a graph
  std::atomic<std::uint64_t> launches_{0};
  std::vector<place> events_;  // by event: where it was recorded
  kept_failure end_;
  std::uint32_t followed_ = 0;
  progress_words own_;
  progress_words* words_ = &own_;
};

/// Whether the communications of a link are marked.
inline bool is_marked(const lane& on, const lane_link& k) {
  return on.of->place != nullptr && (!on.computes() || k.over != over::tp);
}

/// "communicator dp of ranks 0 and 1"
std::string name_of(const communicator&);

/// A communication, as long as this lives.
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

/// Enqueue a store that the host sees. Errors: failure (70).
void store_mark(const lane&, volatile std::uint32_t* to, std::uint32_t value);

}  // namespace rankc::runtime::cuda
