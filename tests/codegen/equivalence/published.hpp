// SPDX-License-Identifier: Apache-2.0
// Published faults: the sound programs that they are planted in, and the mutations that plant them.
#pragma once
#include "refused.hpp"

#include <functional>
#include <string>

namespace equivalence_tests {

/// A published fault, and the sentence that reports it.
struct published_case {
  std::string name;        // its source and number, and a description
  const subject& (*of)();  // the correct program
  int id;                  // the sentence's id
  std::string names;       // another part of the sentence
  std::function<void(subject&)> plant;
};

/// Plant each fault. The comparison with the model must refuse it, with the order that was proven for the
/// correct program.
void check_cases(const std::vector<published_case>&);
/// Plant each fault. The proof of order, messages and memory must refuse it.
void check_proofs(const std::vector<published_case>&);

/// gpt: dp 2, tp 2, sequence parallelism and pp 2. llama: dp 2 and tp 2, for CUDA and for the host.
const subject& gpt();
const subject& llama();
const subject& llama_on_host();

void each_rank(subject&, const std::function<void(int)>& change);
/// Remove the n-th op of a name on all ranks; readers of its results read its operands.
void leave_out(subject&, const char* name, std::size_t n = 0);
void replace(subject&, const char* name, collective_kind by);
void multiply(subject&, const char* row, double factor);
/// Run the collectives of a name over the communicator of another collective.
void retarget(subject&, const char* name, const char* to);
/// Make an operand read the value of another one.
void read_instead(access& own, const access& other);

}  // namespace equivalence_tests
