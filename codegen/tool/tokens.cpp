// SPDX-License-Identifier: Apache-2.0
#include "tokens.hpp"

#include <command_line.hpp>
#include <fmt/format.h>
#include <rankc/runtime/output_rules.hpp>

#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <ostream>
#include <stdexcept>
#include <utility>

#include "documents.hpp"
#include "text_encoder.hpp"

namespace rankc::tool {

namespace {

constexpr std::int32_t narrow_magic = 20240520, wide_magic = 20240801;  // of llm.c

bool is_token_file(std::string_view beginning) {
  std::int32_t magic = 0;
  if (beginning.size() >= sizeof magic) std::memcpy(&magic, beginning.data(), sizeof magic);
  return magic == narrow_magic || magic == wide_magic;
}

/// Errors: failure (2) where the output is one of the inputs, or a file that holds something else.
void refuse_other_files(const tokens_options& o) {
  std::vector<runtime::named_file> inputs;
  for (const auto& file : o.files) inputs.push_back({"the text " + file.string(), file});
  if (!o.model.empty()) inputs.push_back({"--model " + o.model.string(), o.model});
  const runtime::named_file out{"--out " + o.out.string(), o.out};
  runtime::refuse_same_file(out, inputs);
  runtime::refuse_other_kind(out, "a token file of llm.c", is_token_file);
}

/// Tokens of one width.
template <class T>
void append(runtime::durable_file& out, const std::vector<int>& ids) {
  const std::vector<T> narrow(ids.begin(), ids.end());
  out.append(narrow.data(), narrow.size() * sizeof(T));
}

/// Write the tokens of all documents. `note` gets the sentences about texts that were changed.
/// Returns: the number of tokens.
std::size_t write_tokens(const tokens_options& o, const text_encoder& by, std::ostream& note) {
  const bool wide = by.vocab > 65536;
  runtime::remove_unfinished(o.out.parent_path(), o.out.filename().string());
  runtime::output_file to(o.out, 1);
  runtime::durable_file& out = to.file();
  std::array<std::int32_t, 256> header{wide ? wide_magic : narrow_magic, wide ? 7 : 1};
  out.append(header.data(), sizeof header);
  std::size_t count = 0;
  const auto write = [&](const std::vector<int>& ids) {
    count += ids.size();
    if (count > std::numeric_limits<std::int32_t>::max())
      throw runtime::failure(1,
                             "RC8114: {} would hold more than the 2^31 - 1 tokens that its header can count; "
                             "write several files",
                             o.out);
    (wide ? append<std::uint32_t> : append<std::uint16_t>)(out, ids);
  };
  for (const auto& file : o.files) {
    std::size_t replaced = 0;
    for_each_document(file, o.field, [&](std::string text) {
      if (o.begins) write(by.begin);
      write(by.encode(std::move(text), replaced));
      if (o.ends) write(by.end);
    });
    if (replaced > 0)
      note << "note: "
           << runtime::say("RC8119: {} has {} sequences of bytes that are not UTF-8; each is read as U+FFFD",
                           file, replaced)
           << "\n";
  }
  header[2] = static_cast<std::int32_t>(count);
  out.replace(0, {reinterpret_cast<const char*>(header.data()), sizeof header});
  to.put_in_place();
  return count;
}

/// Errors: failure where an option names a token that the model does not have.
void check_ends(const tokens_options& o, const text_encoder& by) {
  const auto check = [&](bool is_asked, const char* option, const char* name, const std::vector<int>& ids) {
    if (!is_asked || !ids.empty()) return;
    if (o.model.empty())
      throw runtime::failure(1, "RC8116: {} needs --model, because bytes have no {} token; leave out {}",
                             option, name, option);
    throw runtime::failure(1,
                           "RC8111: the model {} has no {} token; leave out {}, or for a tokenizer.json put "
                           "its tokenizer_config.json next to it",
                           o.model, name, option);
  };
  check(o.begins, "--bos", "begin-of-sentence", by.begin);
  check(o.ends, "--eos", "end-of-sentence", by.end);
}

}  // namespace

int tokens(const tokens_options& o, std::ostream& out, std::ostream& errors) {
  try {
    if (o.out.extension() != ".bin")
      throw runtime::failure(1, "RC8115: --out {} does not end in .bin, by which --data knows a token file",
                             o.out);
    refuse_other_files(o);
    const text_encoder by = encoder_of(o.model);
    check_ends(o, by);
    const std::size_t count = write_tokens(o, by, errors);
    out << fmt::format("{}: {} tokens of {} files by {}, for a plan with vocab {} or more\n", o.out.string(),
                       count, o.files.size(), by.name, by.vocab);
    return 0;
  } catch (const std::exception& e) {
    errors << "error: " << codegen::sentence_of(e) << "\n";
    return codegen::exit_code_of(e);
  }
}

}  // namespace rankc::tool
