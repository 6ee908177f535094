// SPDX-License-Identifier: Apache-2.0
// The words and options of a generated program's command line. They are checked before any file is opened.
#pragma once
#include <rankc/runtime/placement.hpp>
#include <rankc/runtime/program.hpp>
#include <rankc/trainer/export.hpp>
#include <rankc/trainer/skip_batches.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace rankc::runtime {

struct options {
  enum class command { train, evaluate, generate, score, describe, export_weights };
  command run = command::train;
  bool json = false, measured = false;  // options of describe
  std::int64_t steps = 0;  // train: total steps, including those before the checkpoint; 0: not given
  std::string init;        // hash:SEED, a file or a folder; empty if `load` is given
  std::optional<std::string> data, labels, shuffle, eval_data;  // as the command line spells them
  std::optional<double> eval_fraction;
  std::int64_t eval_every = 0, eval_batches = 0;  // 0: not given
  std::optional<step_range> skipped;              // --skip-batches
  std::optional<double> lr, weight_decay, clip;
  std::optional<std::string> schedule;
  std::string metrics, trace, tensorboard, save, load, out;
  std::optional<std::string> prompt;
  std::string prompt_tokens;
  std::string requests;       // option of score
  std::string tokenizer;      // option of generate: a file, a folder or "bytes"
  std::string chat, date;     // options of generate: the prompt's chat template, and the date that it states
  std::int64_t tokens = 200;  // the number of tokens to generate
  double temperature = 0.8;
  int top_k = 0;
  std::uint64_t sampling_seed = 1;
  export_options exported;
  std::int64_t save_every = 0;      // 0: only at the end
  int keep = 0;                     // the number of checkpoints to keep; 0: all
  std::int64_t check_replicas = 0;  // 0: never
  std::string launch;               // threads or processes; empty: from the environment, else threads
  placement where;                  // from the launcher, except `fault` and `products`

  /// True if the command starts the ranks.
  bool starts() const {
    return run == command::train || run == command::evaluate || run == command::generate ||
           run == command::score || measured;
  }
  /// True in the one process that prints and writes files.
  bool speaks() const { return where.speaks(); }
};

/// Reads a command line; empty if it was `--help` or `--version`, which are already answered.
/// Errors: failure (2) for options that are unknown, malformed, contradictory, or not in this version.
std::optional<options> parse_command_line(const description&, int argc, const char* const* argv);

/// The seed of `hash:SEED`; empty if `init` is a file or folder.
/// Errors: failure (2) for a seed that is no number.
std::optional<std::uint64_t> hash_seed(const std::string& init);

}  // namespace rankc::runtime
