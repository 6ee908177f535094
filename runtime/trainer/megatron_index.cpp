// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/megatron_index.hpp>

#include "token_bytes.hpp"
#include <rankc/runtime/failure.hpp>

#include <cstring>
#include <string_view>

namespace rankc::runtime {
namespace {

constexpr std::string_view magic{"MMIDIDX\0\0", 9};
constexpr std::size_t header = 34;  // magic, version, type, two counts

template <class T>
T value_at(std::string_view bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

template <class T>
std::vector<T> array(std::string_view bytes, std::size_t& offset, std::uint64_t count) {
  std::vector<T> values(count);
  if (count > 0) std::memcpy(values.data(), bytes.data() + offset, count * sizeof(T));
  offset += count * sizeof(T);
  return values;
}

token_type type_of_code(int code, const std::string& name) {
  switch (code) {
    case 1:
      return token_type::u8;
    case 2:
      return token_type::i8;
    case 3:
      return token_type::i16;
    case 4:
      return token_type::i32;
    case 5:
      return token_type::i64;
    case 8:
      return token_type::u16;
  }
  throw failure(1,
                "RC6110: {} says that its tokens are of type {}; expected 1 (u8), 2 (i8), 3 (i16), 4 (i32), "
                "5 (i64) or 8 (u16)",
                name, code);
}

void check_documents(const megatron_index& index, const std::string& name) {
  const auto sequences = static_cast<std::int64_t>(index.lengths.size());
  std::int64_t least = 0;
  for (std::size_t d = 0; d < index.documents.size(); ++d) {
    const std::int64_t border = index.documents[d];
    if (border < least || border > sequences)
      throw failure(
          1,
          "RC6270: {} says that document {} begins with sequence {}; it begins with one of {} to {}, "
          "since documents are in the order of their sequences",
          name, d, border, least, sequences);
    least = border;
  }
}

}  // namespace

megatron_index read_megatron_index(const std::filesystem::path& path, std::size_t bytes) {
  const mapped_file file(path);
  const std::string& name = file.name();
  const std::string_view text = file.bytes();
  if (text.size() < header || !text.starts_with(magic))
    throw failure(1,
                  "RC6111: {} is not an index of Megatron, which begins with MMIDIDX and has {} bytes before "
                  "its arrays",
                  name, header);
  if (const auto version = value_at<std::uint64_t>(text, 9); version != 1)
    throw failure(1, "RC6112: {} is an index of version {}; only version 1 can be read", name, version);
  megatron_index index{.type = type_of_code(value_at<std::uint8_t>(text, 17), name),
                       .lengths = {},
                       .pointers = {},
                       .documents = {}};
  const auto sequences = value_at<std::uint64_t>(text, 18), documents = value_at<std::uint64_t>(text, 26);
  const std::uint64_t most = text.size();  // a larger count means damage, and would overflow below
  const std::uint64_t needed =
      sequences > most || documents > most ? ~std::uint64_t{0} : header + 12 * sequences + 8 * documents;
  if (text.size() < needed)
    throw failure(
        1, "RC6113: {} is truncated: it counts {} sequences and {} document borders, but holds {} bytes",
        name, sequences, documents, text.size());
  if (text.size() != needed && text.size() != needed + sequences)
    throw failure(1,
                  "RC6114: {} is longer than it says: it counts {} sequences and {} document borders, but "
                  "holds {} bytes",
                  name, sequences, documents, text.size());
  std::size_t offset = header;
  index.lengths = array<std::int32_t>(text, offset, sequences);
  index.pointers = array<std::int64_t>(text, offset, sequences);
  index.documents = array<std::int64_t>(text, offset, documents);
  check_documents(index, name);
  const std::size_t width = size_of(index.type);
  for (std::size_t s = 0; s < sequences; ++s) {
    const std::int64_t length = index.lengths[s], begin = index.pointers[s];
    if (length < 0 || begin < 0 || static_cast<std::uint64_t>(begin) > bytes ||
        static_cast<std::uint64_t>(length) * width > bytes - static_cast<std::uint64_t>(begin))
      throw failure(1,
                    "RC6115: {} says that sequence {} has {} tokens of {} bytes from byte {} on, but its "
                    ".bin file has {} bytes",
                    name, s, length, width, begin, bytes);
  }
  return index;
}

}  // namespace rankc::runtime
