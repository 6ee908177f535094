// SPDX-License-Identifier: Apache-2.0
// Runs a rank program in any interleaving, with separate start and end of each op, and reports errors. It
// follows the hardware, for correct and wrong programs: a wait for a later op does nothing, messages match in
// the order in which they start, and bytes are garbage from a write's start to its end, for readers and for
// other writers. A collective ends when all members have started, a shift when the neighbours have, and a
// row-pipelined one together with its pair.
#pragma once
#include <rankc/codegen/program.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace rankc::codegen::testing {

/// One interleaving. `delayed` is the number of an op over all ranks; it ends only when nothing else can
/// happen.
struct interleaving {
  unsigned seed = 0;
  bool buffered = false;  // a send may end before its receive starts
  int delayed = -1;
};

class execution_model {
 public:
  explicit execution_model(const program&);

  int size() const { return static_cast<int>(ops_.size()); }
  /// Run once. Returns: the first error that occurred; empty if none.
  std::string run(const interleaving&);

 private:
  struct span {
    int first, last;  // range of cells, which count over all ranks
    int value, type, replaces;
  };
  struct state {
    const op* source;
    int rank;
    std::vector<int> followers;  // ops that wait for this one's end
    int causes = 0;              // number of ops that this one still waits for
    int channel = -1;
    int first_of = -1, last_of = -1;  // row-pipelined pairs
    std::vector<span> reads, writes;
    bool destroys_reads = false;
    int missing = 0;  // this member and those below change during a run
    bool started = false, ended = false;
    int start_time = 0;
    std::vector<std::pair<int, int>> held;  // the value and type that each write will leave
  };
  struct cell {
    int reading = 0, writing = 0;
    struct entry {
      std::pair<int, int> what;  // value and type
      int time;                  // the last time at which it may have been written
    };
    std::vector<entry> possible;
  };
  struct channel {
    int communicator, from, to;  // from == -1: collectives
    std::vector<int> sends, receives;
    std::vector<std::vector<int>> gathered;  // members that have started, per collective
    std::vector<int> entered;                // collectives started, per rank
  };

  /// The row-pipelined pairs of all members of a communicator that go together: none ends before all have
  /// started.
  struct pair_group {
    int members = 0;
    int started = 0;           // this member and the one below change during a run
    std::vector<int> waiting;  // last ops that have started
  };

  bool refuse_structure();
  void link();
  void lay_out();
  static bool destroys_reads(const state&);
  void start(int);
  void end(int);
  void enable(int op, bool end);
  void communicate(int);
  void find_pairs();
  void gather(int);
  void shift(const std::vector<int>& members, int arrived);
  void finish(int);
  void meet(int, int);
  void check_bytes(const std::vector<int>& members);
  std::uint64_t priority(int event) const;
  void harm(std::string text) {
    if (harm_.empty()) harm_ = std::move(text);
  }

  const program& program_;
  std::string broken_;  // found before any run
  std::vector<state> ops_;
  std::vector<cell> cells_;
  std::map<std::pair<int, std::pair<int, int>>, int> channel_index_;
  std::vector<channel> channels_;
  std::vector<pair_group> pairs_;
  std::vector<int> unfinished_;  // ops per rank
  std::vector<std::pair<std::uint64_t, int>> queue_;
  interleaving how_;
  int time_ = 0;
  std::string harm_;
};

}  // namespace rankc::codegen::testing
