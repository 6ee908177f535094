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
          .encode_with_ends =
              [](const std::string& text, std::vector<int>& ids, std::vector<std::size_t>& ends) {
                for (std::size_t i = 0; i < text.size(); ++i) {
                  ids.push_back(static_cast<unsigned char>(text[i]));
                  ends.push_back(i + 1);
                }
              },
          .id_of =
              [](const std::string& token) {
                return token.size() == 1 ? static_cast<unsigned char>(token.front()) : -1;
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
          .encode_with_ends = [=](const std::string& text, std::vector<int>& ids,
                                  std::vector<std::size_t>& ends) { by->encode(text, ids, ends); },
          .id_of = [=](const std::string& token) { return by->id_of(token); },
          .name = file.string(),
          .vocab = by->size(),
          .begin = by->begin(),
          .end = by->end()};
}

#ifdef RANKC_SENTENCEPIECE
using sentencepiece_model = sentencepiece::SentencePieceProcessor;

/// True if the tokens of a text keep its white space and put nothing before it.
bool keeps_text(const sentencepiece_model& by) {
  const std::string probe = "a\n\n b  c\n";
  std::vector<std::string> pieces;
  std::string decoded;
  const bool is_read = by.Encode(probe, &pieces).ok() && by.Decode(pieces, &decoded).ok();
  return is_read && decoded == probe && pieces.front().starts_with('a');
}

/// Encodes a text with control tokens such as <bos>, which SentencePiece does not find in a text.
class text_with_control_tokens {
 public:
  explicit text_with_control_tokens(std::shared_ptr<sentencepiece_model> by) : by_(std::move(by)) {
    for (int id = 0; id < by_->GetPieceSize(); ++id)
      if (by_->IsControl(id)) tokens_.emplace_back(by_->IdToPiece(id), id);
  }

  void encode(const std::string& text, std::vector<int>& ids, std::vector<std::size_t>& ends) const {
    for (std::size_t at = 0; at < text.size();) {
      std::size_t next = text.size();
      const std::pair<std::string, int>* found = nullptr;
      for (const auto& token : tokens_)
        if (const std::size_t place = text.find(token.first, at); place < next) {
          next = place;
          found = &token;
        }
      encode_piece(text, at, next, ids, ends);
      at = next;
      if (found == nullptr) continue;
      at += found->first.size();
      ids.push_back(found->second);
      ends.push_back(at);
    }
  }

 private:
  /// Encodes a part of the text, with the end of each token in the text. SentencePiece writes a character
  /// that it does not know as byte tokens. All but the last have an empty range at the character's beginning;
  /// here all of them end with the character.
  void encode_piece(const std::string& text, std::size_t begin, std::size_t end, std::vector<int>& ids,
                    std::vector<std::size_t>& ends) const {
    const auto encoded = by_->EncodeAsImmutableProto(std::string_view(text).substr(begin, end - begin));
    const auto pieces = encoded.pieces();
    const std::size_t first = ends.size();
    for (const auto& piece : pieces) {
      ids.push_back(static_cast<int>(piece.id()));
      ends.push_back(begin + piece.end());
    }
    for (std::size_t i = pieces.size(); i-- > 1;) {
      const auto& piece = pieces[i - 1];
      if (by_->IsByte(static_cast<int>(piece.id())) && piece.begin() == piece.end())
        ends[first + i - 1] = ends[first + i];
    }
  }

  std::shared_ptr<sentencepiece_model> by_;
  std::vector<std::pair<std::string, int>> tokens_;
};

std::vector<int> one_or_none(int id) { return id < 0 ? std::vector<int>{} : std::vector<int>{id}; }

text_encoder of_sentencepiece(const fs::path& model) {
  codegen::require_readable(model, runtime::input_file(model));
  const auto processor = std::make_shared<sentencepiece_model>();
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
          .encode_with_ends = [=, controls = text_with_control_tokens(processor)](
                                  const std::string& text, std::vector<int>& ids,
                                  std::vector<std::size_t>& ends) { controls.encode(text, ids, ends); },
          .id_of =
              [=](const std::string& token) {
                const int id = processor->PieceToId(token);
                return processor->IsUnknown(id) ? -1 : id;
              },
          .keeps_text = keeps_text(*processor),
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

/// True if a file begins like a JSON object.
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
