// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/array_folder.hpp>

#include "ignored_label.hpp"

#include <rankc/runtime/failure.hpp>
#include <rankc/runtime/label_weights.hpp>
#include <rankc/trainer/token_weights.hpp>

#include <fmt/ranges.h>
#include <algorithm>
#include <cmath>
#include <limits>

namespace rankc::runtime {
namespace {

input_row token_row(const char* name, const description& about) {
  return {.name = name, .where = {}, .type = input_type::index, .below = about.vocab_used};
}

/// The shape of one sample in an input's file. The numbers of a row are left out if a row is one number.
std::vector<std::uint64_t> shape_of_sample(const description& about, const input_row& input) {
  std::vector<std::uint64_t> shape;
  if (input.rows == input_rows::token) shape.push_back(static_cast<std::uint64_t>(about.seq));
  if (input.width > 1) shape.push_back(static_cast<std::uint64_t>(input.width));
  return shape;
}

/// True if a file has the shape. A last dim of 1 may be present or absent.
bool has_shape(const npy_file& file, std::vector<std::uint64_t> wanted) {
  std::vector<std::uint64_t> found(file.shape().begin() + (file.shape().empty() ? 0 : 1), file.shape().end());
  if (found.size() == wanted.size() + 1 && found.back() == 1) found.pop_back();
  return !file.shape().empty() && found == wanted;
}

}  // namespace

/// Errors: failure (1) if the folder has weights of labels that the plan does not read.
void refuse_other_weights(const std::filesystem::path& folder, const description& about) {
  const std::filesystem::path weights = folder / (std::string(name_of_weights) + ".npy");
  const std::vector<input_row> inputs = inputs_of(about);
  const bool is_read = std::ranges::any_of(
      inputs, [](const input_row& i) { return std::string_view(i.name) == name_of_weights; });
  if (!is_read && std::filesystem::exists(weights)) refuse_weights(weights.string());
}

std::size_t count_of_sample(const description& about, const input_row& input) {
  return (input.rows == input_rows::token ? static_cast<std::size_t>(about.seq) : 1) *
         static_cast<std::size_t>(input.width);
}

array_folder::array_folder(const std::filesystem::path& folder, const description& about)
    : seq_(static_cast<std::uint64_t>(about.seq)),
      largest_(about.type == dtype::f64 ? std::numeric_limits<double>::max()
                                        : std::numeric_limits<float>::max()),
      has_tokens_(reads_tokens(about)) {
  if (std::error_code error; !std::filesystem::is_directory(folder, error))
    throw failure(1, "RC6246: {} is no folder; give arrays:DIR with a file NAME.npy for each input", folder);
  if (has_tokens_) {
    open(folder, token_row("tokens", about), about);
    open(folder, token_row("targets", about), about);
    arrays_.back().ignored = ignored_label_of(about);
  }
  refuse_other_weights(folder, about);
  for (const input_row& input : inputs_of(about)) {
    open(folder, input, about);
    arrays_.back().has_weights = has_weights_of_labels(about, input);
  }
}

void array_folder::open(const std::filesystem::path& folder, const input_row& input,
                        const description& about) {
  if (input.rows == input_rows::step)
    throw failure(
        1,
        "RC6247: input {} has a row for the step, and files have rows for samples; embed the program, and "
        "give it to set_batch",
        input.name);
  npy_file file(folder / (std::string(input.name) + ".npy"));
  const std::vector<std::uint64_t> wanted = shape_of_sample(about, input);
  if (!has_shape(file, wanted))
    throw failure(1, "RC6248: {} has the shape {}; expected (samples{}{})", file.name(), file.shape_text(),
                  wanted.empty() ? "" : ", ", fmt::format("{}", fmt::join(wanted, ", ")));
  if (input.type == input_type::index && !file.is_whole())
    throw failure(1, "RC6249: {} has numbers that are not whole; input {} takes uint8, int32 or int64",
                  file.name(), input.name);
  const std::uint64_t samples = file.shape().front();
  if (samples == 0) throw failure(1, "RC6250: {} has no samples", file.name());
  if (!arrays_.empty() && samples != samples_)
    throw failure(1, "RC6251: {} has {} samples, and {} has {}; expected equal numbers", file.name(), samples,
                  arrays_.front().file.name(), samples_);
  samples_ = samples;
  arrays_.push_back({std::move(file), input, count_of_sample(about, input)});
}

std::vector<std::filesystem::path> array_folder::paths() const {
  std::vector<std::filesystem::path> all;
  for (const array& a : arrays_) all.emplace_back(a.file.name());
  return all;
}

std::string array_folder::text() const {
  std::vector<std::string> names;
  for (const array& a : arrays_) names.push_back(std::string(a.is.name) + ".npy");
  return fmt::format("{} samples in {}", samples_, fmt::join(names, ", "));
}

void array_folder::read(const array& a, std::uint64_t sample, double* to) const {
  a.file.copy(sample * a.count, a.count, to);
  const std::span<const double> values(to, a.count);
  if (a.has_weights) check_weights(a, sample, values);
  else if (a.is.type == input_type::index) check_index(a, sample, values);
  else check_finite(a, sample, values);
}

void array_folder::check_index(const array& a, std::uint64_t sample, std::span<const double> values) const {
  using limits = std::numeric_limits<std::int32_t>;
  const double least = a.is.below > 0 ? 0 : limits::min(),
               most = a.is.below > 0 ? a.is.below - 1 : limits::max();
  const auto wrong = std::ranges::find_if(
      values, [&](double x) { return (x < least || x > most) && !(a.ignored && x == *a.ignored); });
  if (wrong == values.end()) return;
  if (a.ignored)
    throw failure(1, "RC6261: {} has {} in sample {}; labels are {} to {}, or {}, which this plan ignores",
                  a.file.name(), *wrong, sample, least, most, *a.ignored);
  throw failure(1, "RC6252: {} has {} in sample {}; input {} takes whole numbers from {} to {}",
                a.file.name(), *wrong, sample, a.is.name, least, most);
}

void array_folder::check_finite(const array& a, std::uint64_t sample, std::span<const double> values) const {
  const auto wrong = std::ranges::find_if(values, [&](double x) { return !(std::abs(x) <= largest_); });
  if (wrong != values.end())
    throw failure(1, "RC6253: {} has {} in sample {}; input {} takes numbers from {} to {}", a.file.name(),
                  *wrong, sample, a.is.name, -largest_, largest_);
}

void array_folder::check_weights(const array& a, std::uint64_t sample, std::span<const double> values) const {
  const auto wrong = std::ranges::find_if_not(values, is_weight);
  if (wrong != values.end())
    throw failure(1, "RC6263: {} has {} in sample {} at token {}; a weight is 0, or from {} to {}",
                  a.file.name(), *wrong, sample, wrong - values.begin(), least_weight, largest_weight);
}

void array_folder::copy(std::uint64_t sample, const sample_view& to) const {
  std::vector<double> ids(static_cast<std::size_t>(seq_));
  std::size_t next = 0;
  if (has_tokens_)
    for (std::int32_t* const into : {to.tokens, to.targets}) {
      read(arrays_[next++], sample, ids.data());
      std::transform(ids.begin(), ids.end(), into, [](double x) { return static_cast<std::int32_t>(x); });
    }
  for (double* const into : to.inputs) read(arrays_[next++], sample, into);
}

}  // namespace rankc::runtime
