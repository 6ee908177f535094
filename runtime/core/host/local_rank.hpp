// SPDX-License-Identifier: Apache-2.0
// A rank of this process: its memory, what each of its threads sees of it, and what is put into it and read
// from it between steps.
#pragma once
#include "arena.hpp"

#include <rankc/runtime/host/rank.hpp>

#include <memory_resource>
#include <span>
#include <vector>

namespace rankc::runtime::host {

class local_rank {
 public:
  /// The arena lies in `memory`.
  local_rank(const description&, int index, fabric&, std::pmr::memory_resource* memory);

  /// As the threads of lanes that compute see it, lane 0's first. They stay where they are.
  std::span<rank> views() { return views_; }
  std::span<const rank> views() const { return views_; }
  rank& main() { return views_.front(); }
  const rank& main() const { return views_.front(); }
  const arena& memory() const { return arena_; }

  /// Shapes: (rows, seq), row-major; what the rank does not read, or has not of a sequence, is left out.
  void set_batch(int microbatch, const std::int32_t* tokens, const std::int32_t* targets);
  void set_document_starts(int microbatch, const std::int32_t* starts);
  /// Copies the inputs that the rank reads. They have passed check_inputs.
  void set_inputs(int microbatch, std::span<const named_array>);

  /// As engine has them.
  void read(region, std::size_t first, std::size_t count, double* to) const;
  void write(region, std::size_t first, std::size_t count, const double* from);
  void logits(std::size_t token, double* to) const;
  void routers(int microbatch, double* to) const;

  /// What a step has left here; the norm is squared.
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

/// Threads of one rank: one for each lane that computes.
std::size_t count_threads(const layout&);

}  // namespace rankc::runtime::host
