// SPDX-License-Identifier: Apache-2.0
// Whether the programs of all ranks together compute what the model is on one device.
#pragma once
#include <rankc/codegen/program.hpp>
#include <rankc/codegen/prove.hpp>
#include <rankc/codegen/specification.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace rankc::codegen {

/// A seed of the machine's entropy.
std::uint64_t random_seed();

/// The prime fields in which terms are compared. They are drawn when the check runs.
struct fingerprints {
  std::uint64_t seed = 0;  // the primes follow from it
  std::array<std::uint64_t, 2> primes{};
  /// A bound, of a result that holds: the chance that a program is accepted that does not compute the model
  /// and was written before the draw.
  double chance = 1;
};

struct equivalence {
  bool holds = false;
  bool has_unknown_row = false;  // an op is of a row of which the checker has no facts: nothing is claimed
  std::vector<std::string> reasons;  // why not: the op, the tensor, what was expected and what was found
  std::vector<std::string> claims;   // what holds, as sentences
  fingerprints drawn;
};

/// Ranges of bytes: their ends, by their begins.
using byte_ranges = std::map<std::size_t, std::size_t>;

/// Tensors that the ranks of a step begin with and leave to the next step, by the bytes of each: weights,
/// working copies, moments, rotary tables and padding.
struct kept_tensor {
  access at;
  holding what;
};
struct kept_state {
  struct rank {
    int number;  // among the ranks of the world
    std::vector<kept_tensor> tensors;
    byte_ranges tails = {};            // behind tensors: kernels of an optimizer or a norm take them too
    std::vector<access> written = {};  // without padding
  };
  std::string step;
  kernel_set calls;
  std::vector<rank> ranks;
};
kept_state kept_by(const program&);
/// "cuda, deterministic"
std::string name_of(const kernel_set&);

/// Check that programs are the steps of one plan: evaluation, and training where the model trains a
/// parameter; that they call the kernels of one target; and that each begins with the same tensors, of the
/// same types, in the same bytes of every rank. That a step leaves what it begins with, or the model's update
/// of it, `check_equivalence` shows.
equivalence check_steps(const std::vector<kept_state>&, const specification&);

/// Interprets a program over terms and compares the tensors that it leaves with the specification. `order` is
/// a verdict of the program: an order of its ops in which every read follows the write of its value.
using equivalence_check = std::function<equivalence(const program&, const verdict& order)>;

/// The check of all steps of a plan. It draws the fields and makes the model's terms once. The same seed
/// gives the same results. The specification must outlive the check.
equivalence_check check_against(const specification&, std::uint64_t seed = random_seed());

/// Compare one program with the model of its plan.
equivalence check_equivalence(const program&, const verdict& order, const specification&,
                              std::uint64_t seed = random_seed());

}  // namespace rankc::codegen
