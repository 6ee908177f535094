// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/data_spec.hpp>

#include "beside_tokens.hpp"
#include <rankc/runtime/failure.hpp>
#include <rankc/runtime/parse.hpp>
#include <rankc/trainer/data_files.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

namespace rankc::runtime {
namespace {

constexpr std::string_view arrays_prefix = "arrays:";
constexpr double least_share = 0x1p-16;  // the order of a mixture repeats after 2^16 samples
constexpr std::uint64_t most_samples =
    std::numeric_limits<std::int32_t>::max();  // the limit of Megatron's order

bool is_path(std::string_view text) {
  return text.ends_with(".txt") || text.ends_with(".bin") || text.ends_with(index_extension) ||
         text.find_first_of("*?") != text.npos || has_entry(text) ||
         has_entry(std::string(text).append(index_extension));
}

data_source parse_source(std::string_view text, std::string_view whole) {
  using kind = data_source::kind;
  for (const auto& [prefix, from] : {std::pair{"arith:", kind::arith}, std::pair{"rand:", kind::rand}}) {
    if (!text.starts_with(prefix)) continue;
    if (const auto seed = parse_number<std::uint64_t>(text.substr(std::string_view(prefix).size())))
      return {.from = from, .seed = *seed, .path = {}};
    throw failure(2,
                  "RC6055: --data {} has no valid seed; give a whole number from 0 to 2^64 - 1, as in {}1234",
                  whole, prefix);
  }
  if (text.starts_with(arrays_prefix))
    return {.from = kind::arrays, .seed = 0, .path = std::string(text.substr(arrays_prefix.size()))};
  if (text.empty())
    throw failure(2, "RC6056: --data '{}' has an empty source; name each source, as in A:0.7,B:0.3", whole);
  if (is_path(text)) return {.from = kind::files, .seed = 0, .path = std::string(text)};
  throw failure(2,
                "RC6057: --data {} names the file or folder {}, which does not exist; give arith:SEED, "
                "rand:SEED, arrays:DIR, a text file (its bytes are tokens), FILE.bin of llm.c or Megatron, a "
                "folder or a "
                "quoted pattern of these, or several with weights: A:0.7,B:0.3",
                whole, text);
}

[[noreturn]] void refuse_labels(const std::string& labels, std::string_view data) {
  throw failure(
      2,
      "RC6218: --labels {} belongs to one source of Megatron's files, but --data is {}; give --data "
      "PREFIX alone, or leave --labels out",
      labels, data);
}

}  // namespace

std::string source_text(const data_source& source) {
  if (source.from == data_source::kind::files) return source.path;
  if (source.from == data_source::kind::arrays) return std::string(arrays_prefix) + source.path;
  return (source.from == data_source::kind::arith ? "arith:" : "rand:") + std::to_string(source.seed);
}

data_spec parse_data_spec(std::string_view text, const std::string& labels) {
  if (text.find(',') == text.npos || has_entry(text)) {
    data_source only = parse_source(text, text);
    if (!labels.empty() && only.from != data_source::kind::files) refuse_labels(labels, text);
    only.labels = labels;
    return {{std::move(only)}};
  }
  if (!labels.empty()) refuse_labels(labels, text);
  data_spec spec;
  double total = 0;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    const std::size_t colon = part.rfind(':');
    const std::string_view before = part.substr(0, colon);
    const bool is_seed = before == "arith" || before == "rand" || before == "arrays";
    const auto weight =
        colon == part.npos || is_seed ? std::nullopt : parse_number<double>(part.substr(colon + 1));
    if (!weight || !(*weight > 0) || !std::isfinite(*weight))
      throw failure(2,
                    "RC6058: --data {} has the source '{}' without a weight above 0; each of several sources "
                    "needs one, as in A:0.7,B:0.3",
                    text, part);
    spec.sources.push_back(parse_source(part.substr(0, colon), text));
    spec.sources.back().weight = *weight;
    total += *weight;
    begin = end + 1;
  }
  for (const data_source& source : spec.sources)
    if (!(source.weight / total >= least_share))
      throw failure(
          2,
          "RC6305: --data {} gives {} the weight {} of {}, a share of less than 2^-16, which the order of "
          "samples does not resolve; give a larger weight, or leave the source out",
          text, source_text(source), fmt::format("{}", source.weight), fmt::format("{}", total));
  return spec;
}

shuffle_spec parse_shuffle(std::string_view text) {
  const failure refused(2,
                        "RC6059: --shuffle {} is unknown; give none, a SEED from 0 to 2^64 - 1, or "
                        "megatron:SEED[:SAMPLES] with a SEED below 2^32 and SAMPLES from 1 to 2^31 - 1",
                        text);
  if (text.empty() || text == "none") return {};
  if (const auto seed = parse_number<std::uint64_t>(text))
    return {.how = shuffle_spec::kind::windows, .seed = *seed};
  constexpr std::string_view prefix = "megatron:";
  if (!text.starts_with(prefix)) throw refused;
  text.remove_prefix(prefix.size());
  const std::size_t colon = text.find(':');
  const auto seed = parse_number<std::uint32_t>(text.substr(0, colon));
  const auto samples = colon == text.npos ? std::optional<std::uint64_t>(0)
                                          : parse_number<std::uint64_t>(text.substr(colon + 1));
  if (!seed || !samples || *samples > most_samples || (colon != text.npos && *samples == 0)) throw refused;
  return {.how = shuffle_spec::kind::megatron, .seed = *seed, .samples = *samples};
}

}  // namespace rankc::runtime
