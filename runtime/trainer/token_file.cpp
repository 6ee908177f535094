// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/token_file.hpp>

#include <rankc/runtime/failure.hpp>
#include <rankc/trainer/data_files.hpp>
#include <rankc/trainer/megatron_index.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <string_view>
#include <utility>

namespace rankc::runtime {
namespace {

namespace fs = std::filesystem;
static_assert(std::endian::native == std::endian::little, "token files are little endian");

constexpr std::size_t checked_whole = std::size_t{1}
                                      << 28;  // bytes of a file that is checked when it is opened
constexpr std::size_t header_bytes = 256 * sizeof(std::int32_t);

struct header_form {
  std::int32_t magic, version;
  token_type type;
};
constexpr header_form header_forms[]{{20240520, 1, token_type::u16}, {20240801, 7, token_type::u32}};
constexpr std::int32_t evaluation_magic = 20240522;

fs::path index_beside(fs::path bin) { return bin.replace_extension(".idx"); }

/// Whether a file of a folder is one of tokens.
bool is_token_file(const fs::path& file) {
  if (file.extension() != ".bin") return false;
  if (fs::exists(index_beside(file))) return true;
  const mapped_file mapped(file);
  std::int32_t magic = 0;
  if (mapped.bytes().size() >= header_bytes) std::memcpy(&magic, mapped.bytes().data(), sizeof magic);
  return std::any_of(std::begin(header_forms), std::end(header_forms),
                     [&](const header_form& f) { return f.magic == magic; });
}

template <class T>
std::uint64_t copy_as(const char* from, std::uint64_t count, std::int64_t below, std::int32_t* to) {
  for (std::uint64_t i = 0; i < count; ++i) {
    T token;
    std::memcpy(&token, from + i * sizeof(T), sizeof(T));
    if (static_cast<std::int64_t>(token) < 0 || static_cast<std::int64_t>(token) >= below) return i;
    to[i] = static_cast<std::int32_t>(token);
  }
  return count;
}

/// Copy tokens up to one that is not below `below`; returns how many.
std::uint64_t copy_of_type(token_type t, const char* from, std::uint64_t count, std::int64_t below,
                           std::int32_t* to) {
  switch (t) {
    case token_type::u8:
      return copy_as<std::uint8_t>(from, count, below, to);
    case token_type::i8:
      return copy_as<std::int8_t>(from, count, below, to);
    case token_type::i16:
      return copy_as<std::int16_t>(from, count, below, to);
    case token_type::i32:
      return copy_as<std::int32_t>(from, count, below, to);
    case token_type::i64:
      return copy_as<std::int64_t>(from, count, below, to);
    case token_type::u16:
      return copy_as<std::uint16_t>(from, count, below, to);
    case token_type::u32:
      return copy_as<std::uint32_t>(from, count, below, to);
  }
  return 0;
}

std::int64_t token_at(token_type t, const char* from) {
  const auto read = [&]<class T>(T token) {
    std::memcpy(&token, from, sizeof token);
    return static_cast<std::int64_t>(token);
  };
  switch (t) {
    case token_type::u8:
      return read(std::uint8_t{});
    case token_type::i8:
      return read(std::int8_t{});
    case token_type::i16:
      return read(std::int16_t{});
    case token_type::i32:
      return read(std::int32_t{});
    case token_type::i64:
      return read(std::int64_t{});
    case token_type::u16:
      return read(std::uint16_t{});
    case token_type::u32:
      return read(std::uint32_t{});
  }
  return 0;
}

}  // namespace

token_stream::token_stream(const fs::path& path, int vocab) : vocab_(vocab) {
  data_files found = find_data_files(path);
  skipped_ = std::move(found.skipped);
  if (fs::is_directory(path)) add_folder(found.files);
  else
    for (const fs::path& file : found.files) add_file(file);
  check();
}

void token_stream::add_folder(const std::vector<fs::path>& files) {
  const bool of_tokens = std::any_of(files.begin(), files.end(), is_token_file);
  for (const fs::path& file : files) {
    if (of_tokens && is_token_file(file)) add_file(file);
    else if (of_tokens && file.extension() != ".idx") skipped_.push_back(file.string() + " (no tokens)");
    if (of_tokens) continue;
    mapped_file mapped(file);
    if (mapped.bytes().find('\0') == std::string_view::npos) add_text(std::move(mapped));
    else skipped_.push_back(file.string() + " (binary)");
  }
}

void token_stream::add_file(const fs::path& file) {
  mapped_file mapped(file);
  if (file.extension() != ".bin") {
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
  if (const fs::path index = index_beside(file); fs::exists(index)) add_megatron(std::move(mapped), index);
  else add_llm_c(std::move(mapped));
}

void token_stream::add_text(mapped_file file) {
  if (vocab_ < 256)
    throw failure(1,
                  "RC6149: {} is text, whose bytes are tokens 0 to 255, but this plan's vocabulary has {}; "
                  "use a plan with vocab >= 256, a .bin file, arith:SEED or rand:SEED",
                  file.name(), vocab_);
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

void token_stream::add_llm_c(mapped_file file) {
  const std::string& name = file.name();
  const std::string_view bytes = file.bytes();
  if (bytes.size() < header_bytes)
    throw failure(1, "RC6151: {} holds {} bytes, but llm.c's header has {} (256 int32)", name, bytes.size(),
                  header_bytes);
  std::array<std::int32_t, 3> header;
  std::memcpy(header.data(), bytes.data(), sizeof header);
  const auto [magic, version, count] = header;
  const auto form = std::find_if(std::begin(header_forms), std::end(header_forms),
                                 [&, m = magic](const header_form& f) { return f.magic == m; });
  if (magic == evaluation_magic)
    throw failure(
        1,
        "RC6152: {} begins with {}, as llm.c's files of questions for evaluation do; give a file of tokens",
        name, magic);
  if (form == std::end(header_forms))
    throw failure(1,
                  "RC6153: {} begins with {}, but llm.c's files begin with {} (uint16 tokens) or {} "
                  "(uint32); Megatron's have a .idx file beside them",
                  name, magic, header_forms[0].magic, header_forms[1].magic);
  if (version != form->version)
    throw failure(1, "RC6154: {} has version {}; of files that begin with {}, only version {} can be read",
                  name, version, magic, form->version);
  const std::size_t held = bytes.size() - header_bytes, width = size_of(form->type);
  if (count < 0 || held < width * static_cast<std::size_t>(count))
    throw failure(1,
                  "RC6155: {} is truncated: its header counts {} tokens of {} bytes, but {} bytes follow it",
                  name, count, width, held);
  if (held > width * static_cast<std::size_t>(count))
    throw failure(
        1,
        "RC6156: {} is longer than it says: its header counts {} tokens of {} bytes, but {} bytes follow it",
        name, count, width, held);
  files_.push_back(std::move(file));
  add_piece(form->type, header_bytes, static_cast<std::uint64_t>(count));
}

void token_stream::add_megatron(mapped_file file, const fs::path& index_file) {
  const megatron_index index = read_megatron_index(index_file, file.bytes().size());
  indexes_.push_back(index_file);
  files_.push_back(std::move(file));
  sequences_ = true;
  for (std::size_t s = 0; s < index.lengths.size(); ++s)
    add_piece(index.type, static_cast<std::size_t>(index.pointers[s]),
              static_cast<std::uint64_t>(index.lengths[s]));
}

void token_stream::add_piece(token_type type, std::size_t byte, std::uint64_t count) {
  pieces_.push_back({static_cast<std::uint32_t>(files_.size() - 1), type, byte, size_, count});
  size_ += count;
}

std::vector<fs::path> token_stream::paths() const {
  std::vector<fs::path> all;
  for (const mapped_file& file : files_) all.emplace_back(file.name());
  all.insert(all.end(), indexes_.begin(), indexes_.end());
  return all;
}

std::uint64_t token_stream::first_of_file(std::uint32_t file) const {
  return std::lower_bound(pieces_.begin(), pieces_.end(), file,
                          [](const token_piece& p, std::uint32_t f) { return p.file < f; })
      ->first;
}

void token_stream::copy(const token_piece& piece, std::uint64_t first, std::uint64_t count,
                        std::int32_t* to) const {
  const mapped_file& file = files_[piece.file];
  const char* from = file.bytes().data() + piece.byte + first * size_of(piece.type);
  const std::uint64_t good = copy_of_type(piece.type, from, count, vocab_, to);
  if (good == count) return;
  throw failure(
      1,
      "RC6157: {} has token {} at position {} (byte {}), outside this plan's vocabulary; tokens are 0 to {}",
      file.name(), token_at(piece.type, from + good * size_of(piece.type)),
      piece.first - first_of_file(piece.file) + first + good,
      piece.byte + (first + good) * size_of(piece.type), vocab_ - 1);
}

void token_stream::copy(std::uint64_t first, std::uint64_t count, std::int32_t* to) const {
  if (count == 0) return;  // a stream may have no piece
  auto piece = std::upper_bound(pieces_.begin(), pieces_.end(), first,
                                [](std::uint64_t token, const token_piece& p) { return token < p.first; });
  for (--piece; count > 0; ++piece) {
    const std::uint64_t skipped = first - piece->first, part = std::min(count, piece->count - skipped);
    copy(*piece, skipped, part, to);
    first += part;
    to += part;
    count -= part;
  }
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
