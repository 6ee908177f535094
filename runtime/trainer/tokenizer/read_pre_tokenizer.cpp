// SPDX-License-Identifier: Apache-2.0
#include <rankc/runtime/failure.hpp>

#include <stdexcept>
#include <string>
#include <utility>

#include "expression.hpp"
#include "tokenizer_fields.hpp"

namespace rankc::runtime {
namespace {

constexpr std::pair<std::string_view, match_place> places[]{
    {"Removed", match_place::removed},
    {"Isolated", match_place::isolated},
    {"MergedWithPrevious", match_place::merged_with_previous},
    {"MergedWithNext", match_place::merged_with_next},
    {"Contiguous", match_place::contiguous}};

match_place place_of_match(const json_place& behavior) {
  for (const auto& [name, place] : places)
    if (behavior.value() == name) return place;
  behavior.refuse("Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
}

pattern read_pattern(const json_place& place) {
  place.allow_keys({"Regex", "String"});
  const bool is_literal = place.at("Regex").is_null();
  const json_place text = place.at(is_literal ? "String" : "Regex");
  const auto expression = text.as<std::string>();
  try {
    return pattern(is_literal ? pcre2_literal(expression) : pcre2_expression(expression));
  } catch (const std::invalid_argument& reason) {
    text.refuse(std::string("a pattern that PCRE2 can match; ") + reason.what());
  }
}

void read_split(const json_place& place, pre_tokenizer& to) {
  place.allow_keys({"type", "pattern", "behavior", "invert"});
  const match_place how = place_of_match(place.at("behavior"));
  to.splits.push_back({read_pattern(place.at("pattern")), how, place.at("invert").as_or(false)});
}

void read_digits(const json_place& place, pre_tokenizer& to) {
  place.allow_keys({"type", "individual_digits"});
  const bool are_single = place.at("individual_digits").as_or(false);
  to.splits.push_back(
      {pattern(pcre2_expression(R"(\p{N})")), are_single ? match_place::isolated : match_place::contiguous});
}

void read_byte_level(const json_place& place, pre_tokenizer& to) {
  place.allow_keys({"type", "add_prefix_space", "trim_offsets", "use_regex"});
  if (place.at("add_prefix_space").as_or(true)) to.space_before = to.splits.size();
  if (place.at("use_regex").as_or(true)) to.splits.push_back(gpt2_split());
}

/// Reads one pre-tokenizer, or a sequence of them.
/// Returns: true if the last one is ByteLevel, after which the text is written in byte letters.
bool read_one(const json_place& place, pre_tokenizer& to) {
  const json_place type = place.at("type");
  if (type.value() == "ByteLevel") {
    read_byte_level(place, to);
    return true;
  }
  if (type.value() == "Sequence") {
    place.allow_keys({"type", "pretokenizers"});
    const json_place all = place.at("pretokenizers");
    bool is_last = false;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (is_last) all.at(i).refuse("nothing behind ByteLevel");
      is_last = read_one(all.at(i), to);
    }
    return is_last;
  }
  if (type.value() == "Split") read_split(place, to);
  else if (type.value() == "Digits") read_digits(place, to);
  else type.refuse("ByteLevel, Split, Digits or Sequence");
  return false;
}

}  // namespace

pre_tokenizer read_pre_tokenizer(const json_place& place) {
  pre_tokenizer words;
  if (place.is_null() || !read_one(place, words)) place.refuse("one that ends with ByteLevel");
  return words;
}

}  // namespace rankc::runtime
