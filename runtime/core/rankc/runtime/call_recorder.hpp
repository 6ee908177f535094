// SPDX-License-Identifier: Apache-2.0
// Compares the text of a step with its proof before a rank runs it. The text runs once on a rank that has a
// recorder. The recorder hashes the calls and launches nothing. A target that captures its steps captures
// this step afterwards, from the same text.
#pragma once
#include <rankc/runtime/operands.hpp>
#include <rankc/runtime/program.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace rankc::runtime {

/// Records the calls of one step of a rank.
/// Errors: failure (1) at the first call that differs from the proven one, with its name.
class call_recorder {
 public:
  /// `index` is the rank's number in the world.
  call_recorder(const description&, int index, const proven_step&, bool on_host);

  /// The rank's communicators, at the coordinates for which the calls were proven.
  const rank_row& row() const { return row_; }

  // The calls of the text. A lane is given by its index.
  void begin(const char* action) { action_ = action; }
  /// Runs an action on another lane than lane 0.
  void act(const auto& on, const char* action, auto work) {
    action_ = action;
    acting_on_ = on.index;
    work(on);
    acting_on_ = 0;
  }
  void record(int lane, event);
  void wait(int lane, event);
  void follow(int next, int before);
  /// Marks the next communication as one whose rows move while a GEMM runs.
  void move_by_rows() { by_rows_ = true; }

  void call(int lane, const void* call, void (*describe)(const void*, operand_list&));
  void clear(int lane, at, std::size_t bytes);
  void finish();

  /// The hash of a rank's communicators. Ranks of one pipeline coordinate with equal hashes run the same
  /// calls.
  static std::uint64_t hash_of_links(const description&, int index);

 private:
  std::string_view name_of(const char* type);
  std::vector<int>* find(event);
  void communicate(const operand_list&, hashed_call&);
  void move_shards(const operand_list&, hashed_call&);
  void take_operands(const operand_list&, hashed_call&) const;
  std::uint64_t communicator(int lane, over) const;
  void add(hashed_call&);
  [[noreturn]] void refuse(const hashed_call&) const;

  const description& about_;
  const int index_;
  const proven_step& proven_;
  const bool on_host_;
  rank_row row_;
  std::span<const lane_row> lanes_;
  std::vector<std::uint64_t> communicators_;                 // by the rank's links
  std::vector<hashed_lane> queues_;                          // by lane
  std::vector<std::vector<int>> events_;                     // by event: the calls whose end it marks
  std::unordered_map<const char*, std::string_view> names_;  // by the type of the call
  // Kept across calls, so that a call neither fills a list with zeros nor allocates operands.
  operand_list list_;
  std::vector<hashed_operand> operands_;
  const char* action_ = "";
  int acting_on_ = 0;
  bool by_rows_ = false;
  std::size_t calls_ = 0;
  std::uint64_t hash_ = 0;
};

/// The recorder of a lane's rank; null if calls are carried out.
inline call_recorder* recorder_of(const auto& lane) { return lane.of->recorder; }

}  // namespace rankc::runtime
