// SPDX-License-Identifier: Apache-2.0
#include "vocabulary_source.hpp"

#include <rankc/runtime/failure.hpp>

#include <algorithm>
#include <utility>

namespace rankc::runtime {
namespace {

std::string note_on_rows(const std::string& source, std::size_t rows, std::size_t in_plan) {
  if (rows > in_plan)
    return say(
        "RC6641: {} pads its vocabulary to {} rows and the plan has {}; the rows after these are not loaded",
        source, rows, in_plan);
  return say(
      "RC6640: {} has {} rows for its vocabulary and the plan has {}; the rows from {} on are set to zero, "
      "and the softmax of the loss counts them as tokens that never occur, unless the model has "
      "masks_padding",
      source, rows, in_plan, rows);
}

}  // namespace

vocabulary_source::vocabulary_source(std::unique_ptr<tensor_source> from,
                                     const std::map<std::string, std::vector<std::size_t>>& resized,
                                     const std::string& note)
    : from_(std::move(from)), notes_(from_->notes()), shapes_(from_->shapes()) {
  notes_.push_back(note);
  for (const auto& [tensor, shape] : resized) shapes_[tensor] = shape;
}

area vocabulary_source::there(const std::string& tensor, const area& wanted) const {
  const std::size_t rows = from_->shapes().at(tensor).front();
  return common(wanted, {0, rows, wanted.column, wanted.columns});
}

void vocabulary_source::check(const std::string& tensor, const area& wanted) {
  if (const area held = there(tensor, wanted); held.count() > 0) from_->check(tensor, held);
}

void vocabulary_source::read(const std::string& tensor, const area& wanted, double* to) const {
  const area held = there(tensor, wanted);
  if (held.count() > 0) from_->read(tensor, held, to);
  std::fill(to + held.count(), to + wanted.count(), 0.0);
}

std::unique_ptr<tensor_source> with_plan_vocabulary(std::unique_ptr<tensor_source> from,
                                                    const description& about,
                                                    const std::vector<global_parameter>& parameters,
                                                    const std::vector<saved_region>& regions) {
  const auto used = static_cast<std::size_t>(about.vocab_used), all = static_cast<std::size_t>(about.vocab);
  if (from->vocabulary() != used) return from;
  std::map<std::string, std::vector<std::size_t>> resized;
  std::size_t rows = all;  // rows of the source's tables
  for (const saved_region& saved : regions)
    for (const global_parameter& p : parameters) {
      const std::string name = saved.prefix + p.name;
      const auto found = from->shapes().find(name);
      if (found == from->shapes().end() || p.rows != all) continue;
      std::vector<std::size_t> shape = found->second;
      if (shape.front() == all || shape.front() < used) continue;
      rows = std::exchange(shape.front(), all);
      resized[name] = std::move(shape);
    }
  if (resized.empty()) return from;
  const std::string note = note_on_rows(from->name(), rows, all);
  return std::make_unique<vocabulary_source>(std::move(from), resized, note);
}

}  // namespace rankc::runtime
