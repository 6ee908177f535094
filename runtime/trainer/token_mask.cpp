// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/token_mask.hpp>

#include "token_mask_format.hpp"
#include <rankc/runtime/failure.hpp>

#include <algorithm>
#include <cstring>
#include <string_view>

namespace rankc::runtime {
namespace {

token_mask_header header_of(const mapped_file& file) {
  const std::string_view bytes = file.bytes();
  token_mask_header header{};
  if (bytes.size() >= sizeof header) std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != token_mask_magic)
    throw failure(1,
                  "RC6210: {} is not a mask of tokens, which begins with RANKCMSK and has {} bytes before "
                  "its first token; write it with `rankc tokens`, or remove it",
                  file.name(), sizeof header);
  if (header.version != token_mask_version)
    throw failure(1, "RC6211: {} is a mask of version {}; only version {} can be read", file.name(),
                  header.version, token_mask_version);
  return header;
}

}  // namespace

token_mask::token_mask(const std::filesystem::path& path, const std::string& tokens_file,
                       std::uint64_t tokens)
    : file_(path) {
  const token_mask_header header = header_of(file_);
  const std::string_view bytes = file_.bytes().substr(sizeof header);
  if (header.tokens != tokens || bytes.size() != tokens)
    throw failure(1,
                  "RC6212: {} is not the mask of {}: it counts {} tokens and has {} bytes for them, but the "
                  "file has {} tokens",
                  name(), tokens_file, header.tokens, bytes.size(), tokens);
  const auto wrong = std::find_if(bytes.begin(), bytes.end(),
                                  [](char byte) { return byte != label_counts && byte != label_is_ignored; });
  if (wrong != bytes.end())
    throw failure(1, "RC6213: {} has {} at token {}; a mask has 1 for a label, and 0 for a token to ignore",
                  name(), static_cast<int>(static_cast<unsigned char>(*wrong)), wrong - bytes.begin());
  counted_ = static_cast<std::uint64_t>(std::count(bytes.begin(), bytes.end(), label_counts));
  packed_ = header.packed;
}

bool token_mask::counts(std::uint64_t i) const {
  return file_.bytes()[sizeof(token_mask_header) + i] == label_counts;
}

}  // namespace rankc::runtime
