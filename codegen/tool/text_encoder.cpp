// SPDX-License-Identifier: Apache-2.0
#include "text_encoder.hpp"

#include <rankc/runtime/output_rules.hpp>
#include <rankc/trainer/model_files.hpp>
#include <read_file.hpp>
#include <tokenizer/tokenizer.hpp>
#include <tokenizer/utf8.hpp>

#include <memory>
#include <utility>

#ifdef RANKC_SENTENCEPIECE
#include <sentencepiece_processor.h>
#endif

namespace rankc::tool {
namespace {

namespace fs = std::filesystem;

text_encoder of_bytes() {
  return {.encode =
              [](const std::string& text, std::size_t&) {
                const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
                return std::vector<int>(bytes, bytes + text.size());
              },
          .name = "bytes",
          .vocab = 256,
          .begin = {},
          .end = {}};
}

text_encoder of_tokenizer_json(const fs::path& file) {
  const auto by = std::make_shared<runtime::tokenizer>(runtime::read_tokenizer(file));
  return {.encode =
              [=](std::string text, std::size_t& replaced) {
                std::vector<int> ids;
                by->encode(runtime::repaired_utf8(std::move(text), replaced), ids);
                return ids;
              },
          .name = file.string(),
          .vocab = by->size(),
          .begin = by->begin(),
          .end = by->end()};
}

#ifdef RANKC_SENTENCEPIECE
std::vector<int> one_or_none(int id) { return id < 0 ? std::vector<int>{} : std::vector<int>{id}; }

text_encoder of_sentencepiece(const fs::path& model) {
  codegen::require_readable(model, runtime::input_file(model));
  const auto processor = std::make_shared<sentencepiece::SentencePieceProcessor>();
  if (const auto status = processor->Load(model.string()); !status.ok())
    throw runtime::failure(
        1,
        "RC8110: {} is neither a tokenizer.json nor a SentencePiece model (tokenizer.model); for another "
        "tokenizer, write the token ids as a .bin of llm.c or as Megatron's .bin and .idx",
        model);
  return {.encode =
              [=](const std::string& text, std::size_t&) {
                std::vector<int> ids;
                if (const auto status = processor->Encode(text, &ids); !status.ok())
                  throw runtime::failure(1, "RC8112: SentencePiece cannot encode a text: {}",
                                         status.ToString());
                return ids;
              },
          .name = model.string(),
          .vocab = processor->GetPieceSize(),
          .begin = one_or_none(processor->bos_id()),
          .end = one_or_none(processor->eos_id())};
}
#else
text_encoder of_sentencepiece(const fs::path& model) {
  throw runtime::failure(
      1,
      "RC8113: --model {} is not a tokenizer.json, and this rankc was built without SentencePiece; install "
      "libsentencepiece-dev and build it again, or leave --model out for bytes",
      model);
}
#endif

/// Whether a file begins as an object of JSON does.
bool is_json(const fs::path& file) {
  const std::string beginning = runtime::beginning_of(file);
  const std::size_t first = beginning.find_first_not_of(" \t\r\n");
  return first != beginning.npos && beginning[first] == '{';
}

}  // namespace

text_encoder encoder_of(const fs::path& model) {
  if (model.empty()) return of_bytes();
  std::error_code error;
  fs::path file = model;
  if (fs::is_directory(model, error)) {
    file = runtime::tokenizer_file(model);
    if (!runtime::is_there(file, 1)) file = model / "tokenizer.model";
    if (!runtime::is_there(file, 1))
      throw runtime::failure(1, "RC8118: the folder {} has neither a tokenizer.json nor a tokenizer.model",
                             model);
  }
  return is_json(file) ? of_tokenizer_json(file) : of_sentencepiece(file);
}

}  // namespace rankc::tool
