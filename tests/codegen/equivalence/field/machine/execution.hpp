// SPDX-License-Identifier: Apache-2.0
// A model's run on one device, and programs that are compared with it. The machine and the model are compiled
// twice: for numbers of the prime field, and for f64 with the kernels of the host runtime.
#pragma once
#include <rankc/codegen/program.hpp>
#include <rankc/codegen/specification.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace execution {

/// The rows of an input that the runtime loads into a rank, by microbatch. The microbatches lie one behind
/// the other.
struct loaded_input {
  rankc::codegen::holding_kind kind;
  std::string name;  // the name of a declared input
  std::vector<std::vector<std::int64_t>> microbatches;
};
/// The inputs of each rank.
using loader = std::vector<std::vector<loaded_input>>;

/// Whether a program's final state is the model's.
struct outcome {
  bool equal = false;
  std::string difference{};  // the first one: op, tensor, index
  bool is_program = true;    // false: sizes do not fit, or ranks do not meet
};

class model {
 public:
  virtual ~model() = default;
  /// Run a program. The seed determines which ready op runs next. Without a loader, a rank begins with the
  /// rows that the program says.
  virtual outcome run(const rankc::codegen::program&, unsigned seed = 0, const loader* = nullptr) const = 0;
};

/// The model over the prime field.
/// Errors: std::runtime_error if the model cannot be run.
std::shared_ptr<const model> over_field(const rankc::codegen::specification&);
/// The model in f64; numbers are equal within 1e-10 of a tensor's largest element.
std::shared_ptr<const model> in_f64(const rankc::codegen::specification&);

}  // namespace execution
