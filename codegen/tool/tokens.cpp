// SPDX-License-Identifier: Apache-2.0
#include "tokens.hpp"

#include <beside_tokens.hpp>
#include <command_line.hpp>
#include <fmt/format.h>
#include <llm_c_header.hpp>
#include <rankc/runtime/output_rules.hpp>
#include <rankc/runtime/parse.hpp>
#include <rankc/runtime/printable.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <ostream>
#include <string_view>
#include <utility>

#include "chat_examples.hpp"
#include "packer.hpp"
#include "text_encoder.hpp"
#include "text_examples.hpp"
#include "token_writer.hpp"

namespace rankc::tool {

namespace {

namespace fs = std::filesystem;

bool writes_mask(const tokens_options& o) { return !o.chat.empty() || o.pack > 0; }
bool writes_weights(const tokens_options& o) { return !o.weights_field.empty(); }

fs::path mask_of(const tokens_options& o) { return companion_of(o.out, runtime::mask_extension); }
fs::path weights_of(const tokens_options& o) { return companion_of(o.out, runtime::weights_extension); }

/// Errors: failure (2) if a mask or weights of other tokens are next to --out.
void refuse_companions(const tokens_options& o) {
  const auto exists = [](const fs::path& file) {
    std::error_code error;
    return fs::exists(fs::symlink_status(file, error));
  };
  const fs::path mask = mask_of(o), weights = weights_of(o);
  if (!writes_mask(o) && exists(mask))
    throw runtime::failure(2,
                           "RC8145: {} would be read as the mask of --out {}, but no mask is written; remove "
                           "it, or give another --out",
                           mask, o.out);
  if (!writes_weights(o) && exists(weights))
    throw runtime::failure(2,
                           "RC7512: {} would be read as the weights of --out {}, but no weights are written; "
                           "remove it, or give another --out",
                           weights, o.out);
}

/// The number of tokens in the header of a token file of llm.c; 0 without a header.
std::uintmax_t counted_tokens(std::string_view beginning) {
  std::array<std::int32_t, 3> header{};  // magic number, version, tokens
  if (beginning.size() >= sizeof header) std::memcpy(header.data(), beginning.data(), sizeof header);
  return static_cast<std::uintmax_t>(std::max(header[2], 0));
}

/// Weights have no header, so only their size tells whether a file has the weights of the tokens in --out.
/// Errors: failure (2) for a file of another size.
void refuse_other_weights(const tokens_options& o) {
  const fs::path weights = weights_of(o);
  std::error_code error;
  const std::uintmax_t bytes = fs::file_size(weights, error);
  if (error) return;  // no such file, or one that output_file refuses
  const std::uintmax_t tokens = counted_tokens(runtime::beginning_of(o.out));
  if (bytes == tokens * sizeof(float)) return;
  throw runtime::failure(2,
                         "RC6302: {} exists and is not the weights of --out {}, so it is not overwritten: "
                         "give another --out, or remove it",
                         weights, o.out);
}

/// Errors: failure (2) if an output is one of the inputs, or a file that holds something else.
void refuse_other_files(const tokens_options& o) {
  std::vector<runtime::named_file> inputs;
  for (const auto& file : o.files) inputs.push_back({"the text " + file.string(), file});
  if (!o.model.empty()) inputs.push_back({"--model " + o.model.string(), o.model});
  const runtime::named_file out{"--out " + o.out.string(), o.out};
  runtime::refuse_same_file(out, inputs);
  runtime::refuse_other_kind(out, "a token file of llm.c", runtime::begins_as_llm_c);
  refuse_companions(o);
  if (writes_mask(o)) {
    const runtime::named_file mask{"the mask " + mask_of(o).string(), mask_of(o)};
    runtime::refuse_same_file(mask, inputs);
    runtime::refuse_other_kind(mask, "a mask of tokens", is_token_mask);
  }
  if (!writes_weights(o)) return;
  runtime::refuse_same_file({"the weights " + weights_of(o).string(), weights_of(o)}, inputs);
  refuse_other_weights(o);
}

/// Errors: failure (1 or 2) for options that the model or other options do not allow.
void check_options(const tokens_options& o, const text_encoder& by) {
  const auto check = [&](bool is_asked, const char* option, const char* name, const std::vector<int>& ids) {
    if (!is_asked || !ids.empty()) return;
    if (o.model.empty())
      throw runtime::failure(1, "RC8116: {} needs --model, because bytes have no {} token; leave out {}",
                             option, name, option);
    throw runtime::failure(1,
                           "RC8111: the model {} has no {} token; leave out {}; if it is a tokenizer.json, "
                           "put its tokenizer_config.json next to it",
                           o.model, name, option);
  };
  check(o.begins, "--bos", "begin-of-sentence", by.begin);
  check(o.ends, "--eos", "end-of-sentence", by.end);
  if (o.loss != "assistant" && o.loss != "all")
    throw runtime::failure(2, "RC8146: --loss {} is unknown; give assistant or all", o.loss);
  if (writes_weights(o) && o.chat.empty() && o.field.empty())
    throw runtime::failure(2,
                           "RC6301: --weights-field {} needs --field or --chat, because a file that is one "
                           "text has no field for a weight; write the texts as JSON lines",
                           o.weights_field);
  if (o.pack > 0 && o.end_of_document.empty())
    throw runtime::failure(2,
                           "RC8147: --pack {} needs --end-of-document TOKEN, which is written after each "
                           "example and fills the rest of a sequence; the plan has it as .end_of_document",
                           o.pack);
}

/// The token of --end-of-document; nothing without this option.
/// Errors: failure (1) for a token that the model lacks.
std::optional<int> end_of_document(const tokens_options& o, const text_encoder& by) {
  if (o.end_of_document.empty()) return std::nullopt;
  const int id = runtime::parse_number<int>(o.end_of_document).value_or(by.id_of(o.end_of_document));
  if (id >= 0 && id < by.vocab) return id;
  throw runtime::failure(
      1, "RC8148: --end-of-document {} is not a token of {}; give the text of one, or a number from 0 to {}",
      o.end_of_document, by.name, by.vocab - 1);
}

/// Packs examples into sequences and writes them.
std::string write_packed(const tokens_options& o, int filler, token_writer& to, std::ostream& note,
                         const std::function<void(const visit_example&)>& visit_all) {
  packer packs(static_cast<std::size_t>(o.pack), filler,
               [&](const example& sequence) { to.append(sequence); });
  visit_all([&](example one) { packs.add(std::move(one)); });
  packs.finish();
  to.append(
      {{filler}, {runtime::label_is_ignored}, {0}});  // the target of the last token of the last sequence
  const packing_counts& n = packs.counts();
  if (n.cut > 0)
    note << "note: "
         << runtime::say(
                "RC8150: {} of {} examples are longer than --pack {} and are cut: {} tokens in all are "
                "dropped",
                n.cut, n.examples, o.pack, n.lost)
         << "\n";
  const auto room = static_cast<double>(n.sequences) * o.pack;
  return fmt::format("packed: {} examples in {} sequences of {} tokens, {:.2f} % full\n", n.examples,
                     n.sequences, o.pack,
                     n.sequences == 0 ? 0.0 : 100 * static_cast<double>(n.tokens) / room);
}

void write_tokens(const tokens_options& o, std::ostream& out, std::ostream& note) {
  const text_encoder by = encoder_of(o.model);
  check_options(o, by);
  const std::optional<int> end = end_of_document(o, by);
  const auto visit_all = [&](const visit_example& visit) {
    if (o.chat.empty()) return visit_texts(o, by, end, visit, note);
    chat_examples chats(o, by, end);
    for (const auto& file : o.files) chats.for_each(file, visit);
    chats.note(note);
  };
  token_writer to(o.out, {.wide = by.vocab > 65536,
                          .masks = writes_mask(o),
                          .weighs = writes_weights(o),
                          .packed = static_cast<std::uint32_t>(o.pack)});
  std::string packed;
  if (o.pack > 0) packed = write_packed(o, *end, to, note, visit_all);
  else visit_all([&](const example& one) { to.append(one); });
  to.finish();
  out << fmt::format(
             "{}: {} tokens of {} files by {}, for a plan with vocab {} or more{}{}\n",
             runtime::printable(o.out.string()), to.tokens(), o.files.size(), runtime::printable(by.name),
             by.vocab, writes_mask(o) ? fmt::format("; {} are labels", to.labels()) : "",
             writes_weights(o)
                 ? fmt::format("; their weights are in {}", runtime::printable(weights_of(o).string()))
                 : "")
      << packed;
}

}  // namespace

std::string chat_templates() { return runtime::chat_form_names(); }

int tokens(const tokens_options& o, std::ostream& out, std::ostream& errors) {
  try {
    if (o.out.extension() != ".bin")
      throw runtime::failure(1, "RC8115: --out {} does not end in .bin, by which --data knows a token file",
                             o.out);
    refuse_other_files(o);
    write_tokens(o, out, errors);
    return 0;
  } catch (const std::exception& e) {
    errors << "error: " << codegen::sentence_of(e) << "\n";
    return codegen::exit_code_of(e);
  }
}

}  // namespace rankc::tool
