// SPDX-License-Identifier: Apache-2.0
#include "tokens.hpp"

#include <command_line.hpp>
#include <fmt/format.h>
#include <rankc/runtime/output_rules.hpp>
#include <read_file.hpp>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <ostream>
#include <stdexcept>

#ifdef RANKC_SENTENCEPIECE
#include <sentencepiece_processor.h>
#endif

namespace rankc::tool {

namespace {

/// What makes tokens of a text, and how many it knows.
struct tokenizer {
  std::function<std::vector<int>(const std::string&)> encode;
  std::string name;
  int vocab;
};

tokenizer of_bytes() {
  return {[](const std::string& text) {
            const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
            return std::vector<int>(bytes, bytes + text.size());
          },
          "bytes", 256};
}

#ifdef RANKC_SENTENCEPIECE
tokenizer of_model(const std::filesystem::path& model, bool ends) {
  codegen::require_readable(model, runtime::input_file(model));
  const auto processor = std::make_shared<sentencepiece::SentencePieceProcessor>();
  if (const auto status = processor->Load(model.string()); !status.ok())
    throw runtime::failure(
        1,
        "RC8110: {} is not a SentencePiece model (tokenizer.model); for another tokenizer, such as a BPE "
        "tokenizer.json, write the token ids as a .bin of llm.c or as Megatron's .bin and .idx",
        model);
  const int end = processor->eos_id();
  if (ends && end < 0)
    throw runtime::failure(1, "RC8111: the model {} has no end-of-sentence token; leave out --eos", model);
  return {[=](const std::string& text) {
            std::vector<int> ids;
            if (const auto status = processor->Encode(text, &ids); !status.ok())
              throw runtime::failure(1, "RC8112: SentencePiece cannot encode a text: {}", status.ToString());
            if (ends) ids.push_back(end);
            return ids;
          },
          model.string(), processor->GetPieceSize()};
}
#else
tokenizer of_model(const std::filesystem::path& model, bool) {
  throw runtime::failure(
      1,
      "RC8113: --model {} needs SentencePiece, and this rankc was built without it; install "
      "libsentencepiece-dev and build it again, or leave --model out for bytes",
      model);
}
#endif

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

std::size_t write_tokens(const tokens_options& o, const tokenizer& by) {
  const bool wide = by.vocab > 65536;
  runtime::remove_unfinished(o.out.parent_path(), o.out.filename().string());
  runtime::output_file to(o.out, 1);
  runtime::durable_file& out = to.file();
  std::array<std::int32_t, 256> header{wide ? wide_magic : narrow_magic, wide ? 7 : 1};
  out.append(header.data(), sizeof header);
  std::size_t count = 0;
  for (const auto& file : o.files) {
    const std::vector<int> ids = by.encode(codegen::read_file(file));
    count += ids.size();
    if (count > std::numeric_limits<std::int32_t>::max())
      throw runtime::failure(1,
                             "RC8114: {} would hold more than the 2^31 - 1 tokens that its header can count; "
                             "write several files",
                             o.out);
    (wide ? append<std::uint32_t> : append<std::uint16_t>)(out, ids);
  }
  header[2] = static_cast<std::int32_t>(count);
  out.replace(0, {reinterpret_cast<const char*>(header.data()), sizeof header});
  to.put_in_place();
  return count;
}

}  // namespace

int tokens(const tokens_options& o, std::ostream& out, std::ostream& errors) {
  try {
    if (o.out.extension() != ".bin")
      throw runtime::failure(1, "RC8115: --out {} does not end in .bin, by which --data knows a token file",
                             o.out);
    if (o.ends && o.model.empty())
      throw runtime::failure(
          1, "RC8116: --eos needs --model, because bytes have no end-of-sentence token; leave out --eos");
    refuse_other_files(o);
    const tokenizer by = o.model.empty() ? of_bytes() : of_model(o.model, o.ends);
    const std::size_t count = write_tokens(o, by);
    out << fmt::format("{}: {} tokens of {} files by {}, for a plan with vocab {} or more\n", o.out.string(),
                       count, o.files.size(), by.name, by.vocab);
    return 0;
  } catch (const std::exception& e) {
    errors << "error: " << codegen::sentence_of(e) << "\n";
    return codegen::exit_code_of(e);
  }
}

}  // namespace rankc::tool
