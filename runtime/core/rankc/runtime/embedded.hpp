// SPDX-License-Identifier: Apache-2.0
// A rank of a program inside another program, which has its own main, threads, memory and communicators.
// Nothing here prints, throws, starts threads, or changes settings of the process. `host::embed` and
// `cuda::embed` create one.
#pragma once
#include <rankc/runtime/engine.hpp>

#include <functional>
#include <memory>
#include <span>

namespace rankc::runtime {

/// The result of a call: code 0 on success; else the exit code that a trainer would have, and one sentence.
struct [[nodiscard]] status {
  int code = 0;
  char text[1000] = "";

  bool ok() const noexcept { return code == 0; }
};

/// The refusal of a rank that is not embedded here.
inline failure not_embedded(int rank) { return failure(1, "RC5017: rank {} is not embedded here", rank); }

/// The refusal of a timed step of an embedded rank.
inline failure no_times_of_embedded() {
  return failure(1, "RC5018: the times of an embedded rank's step cannot be taken");
}

/// Receives the messages for the application, one line at a time.
using log_lines = std::function<void(const char* line)>;

/// The status of the exception that is being handled.
status status_of_exception() noexcept;

/// Runs `call`, which may throw, and returns its status.
status status_of(auto&& call) noexcept {
  try {
    call();
    return {};
  } catch (...) {
    return status_of_exception();
  }
}

/// One rank, stepped by the calling thread. Only one call may run at a time. All ranks of a program take the
/// same steps.
class embedded {
 public:
  embedded() noexcept;
  embedded(std::unique_ptr<engine>, int rank, log_lines) noexcept;
  embedded(embedded&&) noexcept;
  embedded& operator=(embedded&&) noexcept;
  ~embedded();

  /// Sets a microbatch of this rank's data-parallel coordinate. `inputs` are the inputs that the model
  /// declares. A program whose model reads no tokens takes empty tokens and targets. A program without
  /// declared inputs takes an empty list. `document_starts` has, for each token, the position in its sequence
  /// at which its document begins; empty: documents end with the plan's end_of_document alone.
  /// Shapes: (rows, seq), row-major.
  /// Errors: 1 for another size; for a token outside the vocabulary, or a label that is neither a token nor
  /// the program's ignored label, or that the plan ignores, with its position; for a missing or unknown
  /// input; for starts in a program without documents, and for a position that is no start.
  status set_batch(int microbatch, std::span<const std::int32_t> tokens,
                   std::span<const std::int32_t> targets, std::span<const named_array> inputs = {},
                   std::span<const std::int32_t> document_starts = {}) noexcept;

  /// Takes a training step together with the other ranks. If the rank has no loss, `out.loss` is NaN.
  /// Errors: the code of the rank that failed first; the text names that rank. The program must then be
  /// embedded anew.
  status step(const step_input&, step_output& out) noexcept;
  status evaluate(double& loss) noexcept;
  bool has_loss() const noexcept;

  /// Access to the rank's data, as in engine.
  status read(region, std::size_t first, std::span<double> to) noexcept;
  status write(region, std::size_t first, std::span<const double> from) noexcept;
  status logits(std::size_t token, std::span<double> to) noexcept;

  /// The engine, for checkpoint tools, which throw; null before the rank is embedded.
  engine* inside() noexcept { return engine_.get(); }

 private:
  status logged(auto&& call) noexcept;
  void check_tokens(std::span<const std::int32_t>) const;
  void check_starts(std::span<const std::int32_t> starts, std::span<const std::int32_t> tokens) const;
  void check_labels(std::span<const std::int32_t> labels, std::span<const std::int32_t> tokens,
                    std::span<const std::int32_t> starts) const;

  std::unique_ptr<engine> engine_;
  int rank_ = 0;
  log_lines log_;
};

}  // namespace rankc::runtime
