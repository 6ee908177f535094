// SPDX-License-Identifier: Apache-2.0
// A rank of a program inside another program, which has its own main, threads, memory and communicators.
// Nothing here prints, throws, starts threads, or changes settings of the process. `host::embed` and
// `cuda::embed` make one.
#pragma once
#include <rankc/runtime/engine.hpp>

#include <functional>
#include <memory>
#include <span>

namespace rankc::runtime {

/// How a call ended: 0 where it is done; else the exit code that a trainer would have, and one sentence.
struct [[nodiscard]] status {
  int code = 0;
  char text[1000] = "";

  bool ok() const noexcept { return code == 0; }
};

/// The refusal of a rank that the application has not embedded here.
inline failure not_embedded(int rank) { return failure(1, "RC5017: rank {} is not embedded here", rank); }

/// The refusal of a timed step of an embedded rank.
inline failure no_times_of_embedded() {
  return failure(1, "RC5018: the times of an embedded rank's step cannot be taken");
}

/// What the application is told, a line at a time.
using log_lines = std::function<void(const char* line)>;

/// Of what is being caught.
status status_of_exception() noexcept;

/// The status of what `call` does, which may throw.
status status_of(auto&& call) noexcept {
  try {
    call();
    return {};
  } catch (...) {
    return status_of_exception();
  }
}

/// One rank, stepped by the thread that calls. One call at a time; the ranks of a program take the same
/// steps.
class embedded {
 public:
  embedded() noexcept;
  embedded(std::unique_ptr<engine>, int rank, log_lines) noexcept;
  embedded(embedded&&) noexcept;
  embedded& operator=(embedded&&) noexcept;
  ~embedded();

  /// Sets a microbatch of this rank's data-parallel coordinate. A program whose model reads no tokens takes
  /// empty tokens and targets. `inputs` are those that the model declares.
  /// Shapes: (rows, seq), row-major.
  /// Errors: 1 for another size, and for an input that is missing or unknown. 1, naming the place, for a
  /// token outside the vocabulary, and for a label that is neither a token nor ignored, or that the plan
  /// ignores.
  status set_batch(int microbatch, std::span<const std::int32_t> tokens,
                   std::span<const std::int32_t> targets, std::span<const named_array> inputs = {}) noexcept;

  /// A training step, with the ranks that take theirs. Where the rank has no loss, `out.loss` is no number.
  /// Errors: the code of the rank that has failed first, which the text names; the program is to be embedded
  /// anew.
  status step(const step_input&, step_output& out) noexcept;
  status evaluate(double& loss) noexcept;
  bool has_loss() const noexcept;

  /// As engine has them.
  status read(region, std::size_t first, std::span<double> to) noexcept;
  status write(region, std::size_t first, std::span<const double> from) noexcept;
  status logits(std::size_t token, std::span<double> to) noexcept;

  /// For the tools that checkpoint, which throw; null before it is embedded.
  engine* inside() noexcept { return engine_.get(); }

 private:
  status told(auto&& call) noexcept;
  void check_tokens(std::span<const std::int32_t>) const;
  void check_labels(std::span<const std::int32_t> labels, std::span<const std::int32_t> tokens) const;

  std::unique_ptr<engine> engine_;
  int rank_ = 0;
  log_lines log_;
};

}  // namespace rankc::runtime
