// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/saver.hpp>

#include <rankc/trainer/checkpoint.hpp>

#include <exception>
#include <memory>
#include <utility>

namespace rankc::runtime {

saver::saver(const description& about, const std::filesystem::path& directory, int keep,
             const placement& where)
    : about_(about), directory_(directory), keep_(keep), where_(where) {
  if (!where.speaks()) return;
  notes_ = prepare_save(directory);
  lock_.emplace(directory);
  if (!lock_->is_held())
    notes_.push_back(say(
        "RC6530: {}: the file system has no locks; a second run that saves there is not noticed", directory));
}

saver::~saver() = default;

void saver::begin(engine& e, const run_state& state) {
  if (writer_.joinable()) writer_.join();
  auto taken = std::make_unique<const snapshot>(e, state);
  writer_ = std::jthread([this, from = std::move(taken)] {
    outcome ended{true, ""};
    try {
      ended.line = "saved " + write_checkpoint(about_, *from, directory_, where_, keep_).string();
    } catch (const std::exception& f) {
      ended = {false,
               say("RC6625: the checkpoint of step {} was not saved: {}", from->state().step, f.what())};
    }
    const std::lock_guard lock(mutex_);
    last_saved_ = ended.saved;
    news_.push_back(std::move(ended));
  });
}

std::vector<saver::outcome> saver::news() {
  const std::lock_guard lock(mutex_);
  return std::exchange(news_, {});
}

bool saver::finish() {
  if (writer_.joinable()) writer_.join();
  const std::lock_guard lock(mutex_);
  return last_saved_;
}

}  // namespace rankc::runtime
