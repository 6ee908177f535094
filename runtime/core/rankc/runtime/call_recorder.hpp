// SPDX-License-Identifier: Apache-2.0
// Compares the text of a step with its proof before a rank runs it. The text runs once on a rank that has a
// recorder. The recorder hashes the calls and launches nothing. A target that captures the step captures it
// afterwards, from the same text.
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

/// The calls of one step of a rank.
/// Errors: failure (1) at the first call that is not the one that was proven, with its name.
class call_recorder {
 public:
  /// `index`: of the rank in the world.
  call_recorder(const description&, int index, const proven_step&, bool on_host);

  /// The rank's communicators, at the coordinates that the proven calls are of.
  const rank_row& row() const { return row_; }

  // The calls of the text. Lanes are given by their index.
  void begin(const char* action) { action_ = action; }
  /// An action on another lane than lane 0.
  void act(const auto& on, const char* action, auto work) {
    action_ = action;
    acting_on_ = on.index;
    work(on);
    acting_on_ = 0;
  }
  void record(int lane, event);
  void wait(int lane, event);
  void follow(int next, int before);
  /// The rows of the next communication move while a product runs.
  void move_by_rows() { by_rows_ = true; }

  void call(int lane, const void* call, void (*describe)(const void*, operand_list&));
  void clear(int lane, at, std::size_t bytes);
  void finish();

  /// The hash of a rank's communicators. Ranks of a pipeline coordinate with equal hashes are alike.
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
  std::vector<std::uint64_t> communicators_;                 // of the rank's links
  std::vector<hashed_lane> queues_;                          // by lane
  std::vector<std::vector<int>> events_;                     // the calls that each stands for the end of
  std::unordered_map<const char*, std::string_view> names_;  // of the types of calls
  // Kept from call to call: a list for each call would be filled with zeros, and the operands allocated.
  operand_list list_;
  std::vector<hashed_operand> operands_;
  const char* action_ = "";
  int acting_on_ = 0;
  bool by_rows_ = false;
  std::size_t calls_ = 0;
  std::uint64_t hash_ = 0;
};

/// The recorder of a lane's rank; null where its calls are carried out.
inline call_recorder* recorder_of(const auto& lane) { return lane.of->recorder; }

}  // namespace rankc::runtime
