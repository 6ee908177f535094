// SPDX-License-Identifier: Apache-2.0
// Folds the calls that the text of a step makes on a rank, none of which is carried out, and holds them to what
// was proven.
#pragma once
#include <rankc/runtime/operands.hpp>
#include <rankc/runtime/program.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rankc::runtime {

class call_recorder {
 public:
  /// `index`: of the rank in the world.
  call_recorder(const description&, int index, const proven_step&);

  /// The rank's communicators, at the coordinates that the proven calls are of.
  const rank_row& row() const { return row_; }

  // As the text says them, to lanes by their index.
  void begin(const char* action) { action_ = action; }
  /// An action beside lane 0.
  void act(const auto& on, const char* action, auto work) {
    action_ = action;
    acting_on_ = on.index;
    work(on);
    acting_on_ = 0;
  }
  void record(int lane, event);
  void wait(int lane, event);
  void follow(int next, int before);
  /// The next call moves rows beside a product.
  void move_by_rows() { by_rows_ = true; }

  /// Errors: failure (1) naming the call, where it is not the one that was proven.
  void call(int lane, const void* call, void (*describe)(const void*, operand_list&));
  void clear(int lane, at, std::size_t bytes);
  void finish();

  /// A fold of a rank's communicators, by which ranks of a pipeline coordinate are alike.
  static std::uint64_t fold_of_links(const description&, int index);

 private:
  /// What has been put on a lane: its last call, and the waits after it.
  struct queue {
    std::vector<int> last, waits;
    std::vector<int> end() const;
  };

  void communicate(const operand_list&, folded_call&);
  void move_shards(const operand_list&, folded_call&);
  void take_operands(const operand_list&, folded_call&) const;
  std::uint64_t communicator(int lane, over) const;
  void add(folded_call&);
  [[noreturn]] void refuse(const folded_call&) const;

  const description& about_;
  const int index_;
  const proven_step& proven_;
  rank_row row_;
  std::span<const lane_row> lanes_;
  std::vector<std::uint64_t> communicators_;  // of the rank's links
  std::vector<queue> queues_;                 // by lane
  std::vector<std::vector<int>> events_;      // the calls that each stands for the end of
  const char* action_ = "";
  int acting_on_ = 0;
  bool by_rows_ = false;
  std::size_t calls_ = 0;
  std::uint64_t fold_ = 0;
};

/// The recorder of a lane's rank; null where its calls are carried out.
inline call_recorder* recorder_of(const auto& lane) { return lane.of->recorder; }

}  // namespace rankc::runtime
