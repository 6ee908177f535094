// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/token_file.hpp>

#include "beside_tokens.hpp"
#include "llm_c_header.hpp"
#include "token_bytes.hpp"
#include <rankc/runtime/failure.hpp>
#include <rankc/trainer/data_files.hpp>
#include <rankc/trainer/megatron_index.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

namespace rankc::runtime {
namespace {

namespace fs = std::filesystem;

/// True if a file in a folder is a token file.
bool is_token_file(const fs::path& file) {
  if (file.extension() != ".bin") return false;
  if (beside_tokens(file, index_extension)) return true;
  const mapped_file mapped(file);
  return mapped.bytes().size() >= llm_c_header_bytes && begins_as_llm_c(mapped.bytes());
}

/// The program that compressed a file, by its first bytes; empty if the file is not compressed.
std::string_view compression_of(std::string_view bytes) {
  if (bytes.starts_with("\x1f\x8b")) return "gzip";
  return bytes.starts_with("\x28\xb5\x2f\xfd") ? "zstd" : "";
}

}  // namespace

token_stream::token_stream(const fs::path& path, const legal_tokens& legal) : legal_(legal) {
  data_files found = find_data_files(path);
  skipped_ = std::move(found.skipped);
  if (std::error_code error; fs::is_directory(path, error)) {
    add_folder(std::move(found.files));
  } else {
    remove_companions(found.files);
    for (const fs::path& file : found.files) add_file(file);
  }
  check();
}

void token_stream::add_folder(std::vector<fs::path> files) {
  const bool of_tokens = std::any_of(files.begin(), files.end(), is_token_file);
  if (of_tokens) remove_companions(files);
  for (const fs::path& file : files) {
    if (of_tokens && is_token_file(file)) add_file(file);
    else if (of_tokens) skipped_.push_back(file.string() + " (no tokens)");
    if (of_tokens) continue;
    mapped_file mapped(file);
    const bool is_compressed = !compression_of(mapped.bytes()).empty();
    if (is_compressed || mapped.bytes().find('\0') != std::string_view::npos)
      skipped_.push_back(file.string() + (is_compressed ? " (compressed)" : " (binary)"));
    else add_text(std::move(mapped));
  }
}

void token_stream::add_file(const fs::path& file) {
  mapped_file mapped(file);
  if (file.extension() != ".bin") {
    if (const std::string_view by = compression_of(mapped.bytes()); !by.empty())
      throw failure(1,
                    "RC6214: {} is compressed with {}, and --data does not decompress; decompress it, or "
                    "make tokens from it: rankc tokens --out FILE.bin {}",
                    mapped.name(), by, mapped.name());
    const auto nul = file.extension() == ".txt" ? std::string_view::npos : mapped.bytes().find('\0');
    if (nul != std::string_view::npos)
      throw failure(
          1,
          "RC6147: {} is not text, because byte {} is 0; give text files, .bin files of llm.c or Megatron, "
          "or folders of them. `rankc tokens --out FILE.bin {}` makes tokens of any bytes",
          mapped.name(), nul, mapped.name());
    return add_text(std::move(mapped));
  }
  if (text_)
    throw failure(1,
                  "RC6148: {} holds tokens, but files before it are text; give one of them, or both as "
                  "sources: A:0.5,B:0.5",
                  mapped.name());
  remove_last_target();
  if (const auto index = beside_tokens(file, index_extension)) add_megatron(std::move(mapped), *index);
  else add_llm_c(std::move(mapped));
}

void token_stream::add_text(mapped_file file) {
  if (legal_.vocab < 256)
    throw failure(1,
                  "RC6149: {} is text, whose bytes are tokens 0 to 255, but this plan's vocabulary has {}; "
                  "use a plan with vocab >= 256, a .bin file, arith:SEED or rand:SEED",
                  file.name(), legal_.vocab);
  if (!text_ && !pieces_.empty())
    throw failure(1,
                  "RC6150: {} is text, but files before it hold tokens; give one of them, or both as "
                  "sources: A:0.5,B:0.5",
                  file.name());
  text_ = true;
  const std::size_t bytes = file.bytes().size();
  files_.push_back(std::move(file));
  add_piece(token_type::u8, 0, bytes);
}

/// Removes the last token of the last file, if it is only the target of the last token of a packed sequence.
void token_stream::remove_last_target() {
  if (pieces_.empty()) return;
  token_piece& last = pieces_.back();
  const token_mask* const mask = mask_of(last);
  if (mask == nullptr || mask->packed() == 0 || last.count == 0) return;
  const std::uint64_t target = last.count - 1;
  if (target % mask->packed() != 0 || mask->counts(target)) return;
  --last.count;
  --size_;
}

void token_stream::add_llm_c(mapped_file file) {
  const auto [type, tokens] = read_llm_c_header(file);
  files_.push_back(std::move(file));
  add_piece(type, llm_c_header_bytes, tokens);
  add_companions(tokens);
}

/// Opens the mask and the weights of the last file, if it has them.
void token_stream::add_companions(std::uint64_t tokens) {
  const std::string& file = files_.back().name();
  masks_.resize(files_.size());
  weights_.resize(files_.size());
  if (const auto mask = beside_tokens(file, mask_extension)) masks_.back().emplace(*mask, file, tokens);
  if (const auto weights = beside_tokens(file, weights_extension))
    weights_.back().emplace(*weights, file, tokens);
}

void token_stream::add_megatron(mapped_file file, const fs::path& index_file) {
  if (const auto mask = beside_tokens(file.name(), mask_extension))
    throw failure(1,
                  "RC6215: {} is a mask next to a file of Megatron, but only a .bin of llm.c may have a "
                  "mask; remove it, and give the labels as --labels PREFIX",
                  *mask);
  if (const auto weights = beside_tokens(file.name(), weights_extension))
    throw failure(1,
                  "RC6266: {} has weights next to a file of Megatron, but only a .bin of llm.c may have "
                  "weights; remove it, or make a .bin of llm.c of these tokens",
                  *weights);
  const megatron_index index = read_megatron_index(index_file, file.bytes().size());
  indexes_.push_back(index_file);
  files_.push_back(std::move(file));
  sequences_ = true;
  auto border = index.documents.begin();
  for (std::size_t s = 0; s < index.lengths.size(); ++s) {
    for (; border != index.documents.end() && *border == static_cast<std::int64_t>(s); ++border)
      at_border_ = true;
    add_piece(index.type, static_cast<std::size_t>(index.pointers[s]),
              static_cast<std::uint64_t>(index.lengths[s]));
  }
  at_border_ = true;
}

void token_stream::add_piece(token_type type, std::size_t byte, std::uint64_t count) {
  const bool begins_document = at_border_ && count > 0;
  pieces_.push_back(
      {static_cast<std::uint32_t>(files_.size() - 1), type, begins_document, byte, size_, count});
  size_ += count;
  at_border_ &= count == 0;
}

std::vector<fs::path> token_stream::paths() const {
  std::vector<fs::path> all;
  for (const mapped_file& file : files_) all.emplace_back(file.name());
  all.insert(all.end(), indexes_.begin(), indexes_.end());
  for (const std::optional<token_mask>& mask : masks_)
    if (mask) all.emplace_back(mask->name());
  for (const std::optional<token_weights>& weights : weights_)
    if (weights) all.emplace_back(weights->name());
  return all;
}

std::uint64_t token_stream::first_of_file(std::uint32_t file) const {
  return std::lower_bound(pieces_.begin(), pieces_.end(), file,
                          [](const token_piece& p, std::uint32_t f) { return p.file < f; })
      ->first;
}

void token_stream::refuse(const token_piece& piece, std::uint64_t place) const {
  const mapped_file& file = files_[piece.file];
  const std::size_t byte = piece.byte + place * size_of(piece.type);
  const std::int64_t token = token_at(piece.type, file.bytes().data() + byte);
  const std::uint64_t position = piece.first - first_of_file(piece.file) + place;
  const int most = legal_.vocab - 1;
  if (!legal_.are_labels)
    throw failure(1,
                  "RC6157: {} has token {} at position {} (byte {}), outside this plan's vocabulary; tokens "
                  "are 0 to {}",
                  file.name(), token, position, byte, most);
  if (legal_.ignored)
    throw failure(1,
                  "RC6216: {} has label {} at position {} (byte {}); labels are 0 to {}, or {}, which this "
                  "plan ignores",
                  file.name(), token, position, byte, most, *legal_.ignored);
  throw failure(1,
                "RC6217: {} has label {} at position {} (byte {}); labels are 0 to {}, because this plan "
                "ignores none; to ignore labels, give it training{.ignored_label = -100}",
                file.name(), token, position, byte, most);
}

void token_stream::copy(const token_piece& piece, std::uint64_t first, std::uint64_t count,
                        std::int32_t* to) const {
  const char* from = files_[piece.file].bytes().data() + piece.byte + first * size_of(piece.type);
  const std::uint64_t good = copy_tokens(piece.type, from, count, legal_, to);
  if (good < count) refuse(piece, first + good);
}

/// Calls `visit` for each piece that overlaps tokens [first, first + count), with the piece, the overlap's
/// offset in it, and the overlap's length.
template <class Visit>
void token_stream::for_each_part(std::uint64_t first, std::uint64_t count, const Visit& visit) const {
  if (count == 0) return;  // a stream may have no piece
  auto piece = std::upper_bound(pieces_.begin(), pieces_.end(), first,
                                [](std::uint64_t token, const token_piece& p) { return token < p.first; });
  for (--piece; count > 0; ++piece) {
    const std::uint64_t skipped = first - piece->first, part = std::min(count, piece->count - skipped);
    visit(*piece, skipped, part);
    first += part;
    count -= part;
  }
}

void token_stream::copy(std::uint64_t first, std::uint64_t count, std::int32_t* to) const {
  for_each_part(first, count, [&](const token_piece& piece, std::uint64_t skipped, std::uint64_t part) {
    copy(piece, skipped, part, to);
    to += part;
  });
}

std::uint64_t token_stream::documents() const {
  return static_cast<std::uint64_t>(std::ranges::count_if(pieces_, &token_piece::begins_document));
}

void token_stream::mark_documents(std::uint64_t first, std::uint64_t count, std::uint8_t* begins) const {
  for_each_part(first, count, [&](const token_piece& piece, std::uint64_t skipped, std::uint64_t part) {
    if (piece.begins_document && skipped == 0) *begins = 1;
    begins += part;
  });
}

const token_mask* token_stream::mask_of(const token_piece& piece) const {
  return piece.file < masks_.size() && masks_[piece.file] ? &*masks_[piece.file] : nullptr;
}

void token_stream::mask(std::uint64_t first, std::uint64_t count, std::int32_t ignored,
                        std::int32_t* labels) const {
  for_each_part(first, count, [&](const token_piece& piece, std::uint64_t skipped, std::uint64_t part) {
    if (const token_mask* const mask = mask_of(piece))
      for (std::uint64_t i = 0; i < part; ++i)
        if (!mask->counts(skipped + i)) labels[i] = ignored;
    labels += part;
  });
}

const token_mask* token_stream::first_mask() const {
  for (const token_piece& piece : pieces_)
    if (const token_mask* const mask = mask_of(piece); mask != nullptr && mask->counted() < piece.count)
      return mask;
  return nullptr;
}

const token_weights* token_stream::weights_of(const token_piece& piece) const {
  return piece.file < weights_.size() && weights_[piece.file] ? &*weights_[piece.file] : nullptr;
}

const token_weights* token_stream::first_weights() const {
  for (const std::optional<token_weights>& weights : weights_)
    if (weights) return &*weights;
  return nullptr;
}

std::string token_stream::file_without_weights() const {
  for (const token_piece& piece : pieces_)
    if (weights_of(piece) == nullptr) return files_[piece.file].name();
  return "";
}

void token_stream::copy_weights(std::uint64_t first, std::uint64_t count, double* to) const {
  for_each_part(first, count, [&](const token_piece& piece, std::uint64_t skipped, std::uint64_t part) {
    const token_weights& weights = *weights_of(piece);
    for (std::uint64_t i = 0; i < part; ++i) *to++ = static_cast<double>(weights.weight(skipped + i));
  });
}

std::uint64_t token_stream::labels() const {
  std::uint64_t counted = size_;
  for (const token_piece& piece : pieces_)
    if (const token_mask* const mask = mask_of(piece)) counted -= piece.count - mask->counted();
  return counted;
}

std::vector<packed_file> token_stream::packed() const {
  std::vector<packed_file> files;
  for (const token_piece& piece : pieces_)
    if (const token_mask* const mask = mask_of(piece); mask != nullptr && mask->packed() > 0)
      files.push_back({files_[piece.file].name(), mask->packed(), piece.first});
  return files;
}

void token_stream::check() const {
  if (text_) return;
  std::vector<std::int32_t> some(1 << 16);
  for (const token_piece& piece : pieces_) {
    if (files_[piece.file].bytes().size() >= checked_whole) continue;
    for (std::uint64_t first = 0; first < piece.count; first += some.size())
      copy(piece, first, std::min<std::uint64_t>(some.size(), piece.count - first), some.data());
  }
}

double byte_entropy(const token_stream& text) {
  std::array<std::uint64_t, 256> counts{};
  const std::uint64_t total = std::min<std::uint64_t>(text.size(), checked_whole);
  std::vector<std::int32_t> some(1 << 16);
  for (std::uint64_t first = 0; first < total; first += some.size()) {
    const std::uint64_t part = std::min<std::uint64_t>(some.size(), total - first);
    text.copy(first, part, some.data());
    for (std::uint64_t i = 0; i < part; ++i) ++counts[static_cast<std::size_t>(some[i])];
  }
  double entropy = 0;
  for (const std::uint64_t count : counts) {
    if (count == 0) continue;
    const double p = static_cast<double>(count) / static_cast<double>(total);
    entropy -= p * std::log(p);
  }
  return entropy;
}

}  // namespace rankc::runtime
