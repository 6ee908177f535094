// SPDX-License-Identifier: Apache-2.0
#include "tokens.hpp"

#include <command_line.hpp>
#include <fmt/format.h>
#include <llm_c_header.hpp>
#include <rankc/runtime/output_rules.hpp>
#include <rankc/runtime/parse.hpp>
#include <rankc/runtime/printable.hpp>

#include <cstdint>
#include <optional>
#include <ostream>
#include <utility>

#include "chat_examples.hpp"
#include "packer.hpp"
#include "text_encoder.hpp"
#include "text_examples.hpp"
#include "token_writer.hpp"

namespace rankc::tool {

namespace {

bool writes_mask(const tokens_options& o) { return !o.chat.empty() || o.pack > 0; }

/// Errors: failure (2) if a mask or weights of other tokens are next to --out.
void refuse_companions(const tokens_options& o) {
  const auto exists = [](const std::filesystem::path& file) {
    std::error_code error;
    return std::filesystem::exists(std::filesystem::symlink_status(file, error));
  };
  const std::filesystem::path mask = runtime::mask_beside(o.out),
                              weights = std::filesystem::path(o.out).replace_extension(".weights");
  if (!writes_mask(o) && exists(mask))
    throw runtime::failure(2,
                           "RC8145: {} would be read as the mask of --out {}, but no mask is written; remove "
                           "it, or give another --out",
                           mask, o.out);
  if (exists(weights))
    throw runtime::failure(2,
                           "RC6269: {} would be read as the weights of --out {}, but no weights are written; "
                           "remove it, or give another --out",
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
  const std::filesystem::path mask_file = runtime::mask_beside(o.out);
  const runtime::named_file mask{"the mask " + mask_file.string(), mask_file};
  refuse_companions(o);
  if (!writes_mask(o)) return;
  runtime::refuse_same_file(mask, inputs);
  runtime::refuse_other_kind(mask, "a mask of tokens", is_token_mask);
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
               [&](const example& sequence) { to.append(sequence.ids, sequence.labels); });
  visit_all([&](example one) { packs.add(std::move(one)); });
  packs.finish();
  to.append({filler}, {runtime::label_is_ignored});  // the target of the last token of the last sequence
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
  token_writer to(
      o.out,
      {.wide = by.vocab > 65536, .masks = writes_mask(o), .packed = static_cast<std::uint32_t>(o.pack)});
  std::string packed;
  if (o.pack > 0) packed = write_packed(o, *end, to, note, visit_all);
  else visit_all([&](const example& one) { to.append(one.ids, one.labels); });
  to.finish();
  out << fmt::format("{}: {} tokens of {} files by {}, for a plan with vocab {} or more{}\n",
                     runtime::printable(o.out.string()), to.tokens(), o.files.size(),
                     runtime::printable(by.name), by.vocab,
                     writes_mask(o) ? fmt::format("; {} are labels", to.labels()) : "")
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
