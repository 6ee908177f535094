// SPDX-License-Identifier: Apache-2.0
// A rank of this process: its memory, the views of its threads, and access to its data between steps.
#pragma once
#include "arena.hpp"

#include <rankc/runtime/host/rank.hpp>

#include <memory_resource>
#include <span>
#include <vector>

namespace rankc::runtime::host {

class local_rank {
 public:
  /// The arena is allocated from `memory`.
  local_rank(const description&, int index, fabric&, std::pmr::memory_resource* memory);

  /// The views of the threads of computing lanes, lane 0's first. Their addresses stay valid.
  std::span<rank> views() { return views_; }
  std::span<const rank> views() const { return views_; }
  rank& main() { return views_.front(); }
  const rank& main() const { return views_.front(); }
  const arena& memory() const { return arena_; }

  /// Copies the part of the tokens and targets that the rank reads and holds.
  /// Shapes: (rows, seq), row-major.
  void set_batch(int microbatch, const std::int32_t* tokens, const std::int32_t* targets);
  void set_document_starts(int microbatch, const std::int32_t* starts);
  /// Copies the inputs that the rank reads. They have passed check_inputs.
  void set_inputs(int microbatch, std::span<const named_array>);

  /// Access to the rank's data, as in engine.
  void read(region, std::size_t first, std::size_t count, double* to) const;
  void write(region, std::size_t first, std::size_t count, const double* from);
  void logits(std::size_t token, double* to) const;
  void routers(int microbatch, double* to) const;

  /// The results of a step; the norm is squared.
  double loss() const { return load(main().where->loss); }
  double norm_squared() const { return load(main().where->norm); }

 private:
  double load(at) const;
  std::int32_t* starts_of(int microbatch) const;
  std::byte* element(region, std::size_t first, std::size_t count) const;

  const description& about_;
  arena arena_;
  std::vector<rank> views_;
};

/// The number of threads of one rank: one for each computing lane.
std::size_t count_threads(const layout&);

}  // namespace rankc::runtime::host
