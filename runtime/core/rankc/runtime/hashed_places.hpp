// SPDX-License-Identifier: Apache-2.0
// The facts of a step that its text does not contain: the kernels, and the offsets in the arena that the
// trainer finds in the tables of the program. They are hashed after the calls of a step.
#pragma once
#include <rankc/runtime/hashed_call.hpp>
#include <rankc/runtime/proven.hpp>
#include <rankc/contract/rope_scaling.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rankc::runtime {

enum class kept_kind : unsigned char { weight, working_copy, first_moment, second_moment, rotary };

/// A tensor that exists when a step begins and that the next step reads.
struct hashed_tensor {
  kept_kind kind;
  std::string_view name;  // for a parameter
  std::size_t begin;
  std::int64_t positions = 0, dim = 0;  // for a rotary table
  double theta = 0;
  rope_scaling scaling{};
};

inline std::uint64_t hash_of(const hashed_tensor& t) {
  hasher f;
  f.add(static_cast<std::uint64_t>(t.kind));
  f.add(t.name);
  f.add(std::uint64_t{t.begin});
  if (t.kind != kept_kind::rotary) return f.value();
  f.add(static_cast<std::uint64_t>(t.positions));
  f.add(static_cast<std::uint64_t>(t.dim));
  f.add(t.theta);
  f.add(static_cast<std::uint64_t>(t.scaling.by));
  for (const double number : {t.scaling.factor, t.scaling.low_freq_factor, t.scaling.high_freq_factor})
    f.add(number);
  f.add(static_cast<std::uint64_t>(t.scaling.original_positions));
  if (t.scaling.share != 1) f.add(t.scaling.share);
  return f.value();
}

/// The hash of an input that the model declares. `place` is the offset of its first byte.
inline std::uint64_t hash_of_input(std::string_view name, std::size_t place) {
  hasher f;
  f.add(name);
  f.add(std::uint64_t{place});
  return f.value();
}

/// An input of a step, as the ranks of a pipeline coordinate have it. `bytes`: of one microbatch. `apart`:
/// rows from one microbatch to the next; 0 with one microbatch, or if all have the same rows.
struct hashed_input {
  std::string_view name;
  hashed_type type;
  std::size_t bytes;
  std::int64_t microbatches, apart;
};

/// Hashes an input, and its rows in the first microbatch.
class row_hasher {
 public:
  explicit row_hasher(const hashed_input& input) {
    hash_.add(input.name);
    hash_.add(static_cast<std::uint64_t>(input.type));
    hash_.add(std::uint64_t{input.bytes});
    add(input.microbatches, input.apart);
  }
  void begin_rank(int rank) {
    end_rank();
    hash_.add(static_cast<std::uint64_t>(rank));
  }
  /// Adds rows behind those that the rank already has.
  void add_rows(std::int64_t first, std::int64_t count) {
    if (first == first_ + count_) {
      count_ += count;
      return;
    }
    end_rank();
    first_ = first;
    count_ = count;
  }
  std::uint64_t value() {
    end_rank();
    return hash_.value();
  }

 private:
  void add(std::int64_t x, std::int64_t y) {
    hash_.add(static_cast<std::uint64_t>(x));
    hash_.add(static_cast<std::uint64_t>(y));
  }
  void end_rank() {
    if (count_ > 0) add(first_, count_);
    first_ = count_ = 0;
  }

  hasher hash_;
  std::int64_t first_ = 0, count_ = 0;  // rows that are not hashed yet
};

/// Offsets of the tensors of all microbatches, and of the results.
struct hashed_places {
  static constexpr std::size_t none =
      ~std::size_t{0};  // the rank does not have this tensor, or the step does not use it
  std::size_t arena_bytes = 0, tokens = none, targets = none, starts = none;
  std::size_t loss = none;   // for a rank that ends a step with the loss
  std::size_t norm = none;   // for a training step
  std::uint64_t kept = 0;    // the sum of the hashes of kept tensors, which have no order
  std::uint64_t inputs = 0;  // the sum of the hashes of the declared inputs; 0 without such inputs
  std::uint64_t rows = 0;    // the sum of the hashes of the rows of all inputs
  bool on_host = false, deterministic = false;
};

inline std::uint64_t hash_of(std::uint64_t before, const hashed_places& p) {
  hasher f(before);
  for (const std::size_t place : {p.arena_bytes, p.tokens, p.targets, p.starts, p.loss, p.norm})
    f.add(std::uint64_t{place});
  f.add(p.kept);
  if (p.inputs != 0) f.add(p.inputs);
  f.add(p.rows);
  f.add(std::uint64_t{p.on_host} << 1 | (p.deterministic ? 1 : 0));
  return f.value();
}

}  // namespace rankc::runtime
