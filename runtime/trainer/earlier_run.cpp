// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/earlier_run.hpp>

#include <rankc/runtime/output_rules.hpp>
#include <rankc/trainer/learning_rate.hpp>
#include <rankc/trainer/model_files.hpp>

#include <fmt/chrono.h>
#include <sys/stat.h>
#include <tuple>
#include <vector>

namespace rankc::runtime {
namespace {

namespace fs = std::filesystem;

/// True if two states are of the same run: the same plan, started with the same options.
bool is_same_run(const run_state& a, const run_state& b) {
  const auto options_of = [](const run_state& s) {
    return std::tuple(s.plan_hash, s.init, s.data, s.labels, s.shuffle, s.eval_data, s.eval_fraction,
                      s.last_step, s.train.lr, s.train.weight_decay, s.train.clip,
                      schedule_text(schedule_of(s.train)));
  };
  return options_of(a) == options_of(b);
}

/// The time at which a checkpoint was completed.
std::string time_of(const fs::path& checkpoint) {
  struct stat commit{};
  if (::stat((checkpoint / commit_file).c_str(), &commit) != 0) return "at an unknown time";
  return fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(commit.st_mtime));
}

/// The state of a checkpoint in the folder of --save.
run_state state_of(const description& about, const std::string& save, const fs::path& checkpoint) try {
  return read_run_state(about, checkpoint / run_file);
} catch (const failure& f) {
  throw failure(2, "RC6533: --save {} has a checkpoint of an unknown run; give this run another folder: {}",
                save, f.what());
}

}  // namespace

std::optional<std::string> check_earlier_run(const options& o, const beginning& b, const description& about) {
  if (const fs::path model = find_model_file(o.save, 2); !model.empty())
    throw failure(2,
                  "RC6323: --save {} has the model file {}, and --init {} would read the checkpoints in its "
                  "place; give the checkpoints another folder",
                  o.save, model.filename(), o.save);
  const std::vector<fs::path> there = find_checkpoints(o.save);
  if (there.empty() || (b.from && is_same_file(b.from->folder / "..", o.save))) return std::nullopt;
  const run_state earlier = state_of(about, o.save, there.front());
  if (!is_same_run(earlier, b.state))
    throw failure(2,
                  "RC6532: --save {} has checkpoints of another run: plan {}, step {} of {}, saved {}; give "
                  "this run another folder, or continue that run: --load {}",
                  o.save, earlier.plan, earlier.step, earlier.last_step, time_of(there.front()), o.save);
  return say(
      "RC6534: {} has checkpoints of this same run up to step {}; this start replaces them from step {} on; "
      "--load {} continues that run instead",
      o.save, earlier.step, b.state.step + 1, o.save);
}

}  // namespace rankc::runtime
