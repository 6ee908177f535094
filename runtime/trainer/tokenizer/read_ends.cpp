// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/model_files.hpp>

#include <string>

#include "tokenizer_fields.hpp"

namespace rankc::runtime {
namespace {

/// Appends the ids of a template's special token.
void append_special(const json_place& place, const json_place& specials, std::vector<std::int32_t>& to) {
  const json_place ids = specials.at(place.at("id").as<std::string>()).at("ids");
  for (std::size_t i = 0; i < ids.size(); ++i) to.push_back(ids.at(i).as<std::int32_t>());
}

/// Reads the tokens before and after the text in a template for one text.
void read_template(const json_place& place, tokenizer_parts& to) {
  place.allow_keys({"type", "single", "pair", "special_tokens"});
  const json_place single = place.at("single");
  bool is_behind = false;
  for (std::size_t i = 0; i < single.size(); ++i) {
    const json_place piece = single.at(i);
    piece.allow_keys({"SpecialToken", "Sequence"});
    const bool is_text = piece.at("SpecialToken").is_null();
    if (is_text && (is_behind || piece.at("Sequence").at("id").value() != "A"))
      piece.refuse("the text A, once");
    if (is_text) is_behind = true;
    else append_special(piece.at("SpecialToken"), place.at("special_tokens"), is_behind ? to.end : to.begin);
  }
  if (!is_behind) single.refuse("a template with the text A");
}

void read_post_processor(const json_place& place, tokenizer_parts& to) {
  if (place.is_null()) return;
  const json_place type = place.at("type");
  if (type.value() == "TemplateProcessing") return read_template(place, to);
  if (type.value() == "Sequence") {
    place.allow_keys({"type", "processors"});
    const json_place all = place.at("processors");
    for (std::size_t i = 0; i < all.size(); ++i) read_post_processor(all.at(i), to);
    return;
  }
  if (type.value() != "ByteLevel") type.refuse("TemplateProcessing, ByteLevel or Sequence");
  place.allow_keys({"type", "add_prefix_space", "trim_offsets", "use_regex"});
}

/// Appends a token that tokenizer_config.json names: a text, or an object with `content`.
void append_named(const json_place& named, const vocabulary& tokens, std::vector<std::int32_t>& to) {
  if (named.is_null() || !to.empty()) return;
  const auto token = (named.value().is_object() ? named.at("content") : named).as<std::string>();
  const std::int32_t id = tokens.id_of(token);
  if (id < 0) named.refuse("a token of tokenizer.json");
  to.push_back(id);
}

}  // namespace

void read_ends(const json_place& post_processor, const std::filesystem::path& file, tokenizer_parts& to) {
  read_post_processor(post_processor, to);
  for (const auto* ids : {&to.begin, &to.end})
    for (const std::int32_t id : *ids)
      if (!to.tokens.has(id)) post_processor.refuse("a template with ids of tokens");
  to.opening = to.begin;
  const std::filesystem::path config = file.parent_path() / "tokenizer_config.json";
  if (!is_there(config, 1)) return;
  const auto root = read_json<nlohmann::json>(config, 1, settings_limits);
  const std::string name = config.string();
  const json_place place(name, root);
  append_named(place.at("bos_token"), to.tokens, to.begin);
  append_named(place.at("eos_token"), to.tokens, to.end);
}

}  // namespace rankc::runtime
