// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/npy_file.hpp>

#include <rankc/runtime/failure.hpp>
#include <rankc/runtime/parse.hpp>

#include <fmt/ranges.h>
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

namespace rankc::runtime {
namespace {

static_assert(std::endian::native == std::endian::little,
              "the numbers of .npy files are read as little endian");

constexpr std::string_view npy_magic = "\x93NUMPY";
constexpr std::size_t most_dims = 8;
constexpr std::array<std::pair<std::string_view, std::size_t>, 5> types{
    {{"<f4", 4}, {"<f8", 8}, {"|u1", 1}, {"<i4", 4}, {"<i8", 8}}};

/// The text after "'key':" in the header's dict, up to one of the characters in `ends`.
std::optional<std::string_view> value_of(std::string_view header, std::string_view key,
                                         std::string_view ends) {
  const std::size_t at = header.find(fmt::format("'{}':", key));
  if (at == header.npos) return std::nullopt;
  std::string_view rest = header.substr(at + key.size() + 3);
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  const std::size_t end = rest.find_first_of(ends);
  if (end == rest.npos) return std::nullopt;
  return rest.substr(0, end);
}

/// The sizes in "(100, 16,"; empty for text that is no list of sizes.
std::optional<std::vector<std::uint64_t>> sizes_of(std::string_view text) {
  if (!text.starts_with('(')) return std::nullopt;
  text.remove_prefix(1);
  std::vector<std::uint64_t> sizes;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    std::string_view size = text.substr(0, end);
    size.remove_prefix(std::min(size.find_first_not_of(' '), size.size()));
    if (const auto n = parse_number<std::uint64_t>(size)) sizes.push_back(*n);
    else if (!size.empty() || end < text.size()) return std::nullopt;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return sizes;
}

/// The product of sizes; empty if it overflows.
std::optional<std::uint64_t> product_of(const std::vector<std::uint64_t>& sizes) {
  std::uint64_t all = 1;
  for (const std::uint64_t size : sizes)
    if (__builtin_mul_overflow(all, size, &all)) return std::nullopt;
  return all;
}

template <class T>
void widen(const char* from, std::uint64_t count, double* to) {
  for (std::uint64_t i = 0; i < count; ++i) {
    T x;
    std::memcpy(&x, from + i * sizeof x, sizeof x);
    to[i] = static_cast<double>(x);
  }
}

}  // namespace

npy_file::npy_file(const std::filesystem::path& path) : file_(path) { read_header(); }

void npy_file::read_header() {
  const std::string_view all = file_.bytes();
  const bool is_npy = all.starts_with(npy_magic) && all.size() >= 12 && (all[6] == 1 || all[6] == 2);
  if (!is_npy)
    throw failure(1, "RC6240: {} is no .npy file of version 1.0 or 2.0; write it with numpy.save", name());
  const std::size_t length_bytes = all[6] == 1 ? 2 : 4;
  std::uint32_t length = 0;
  std::memcpy(&length, all.data() + 8, length_bytes);
  begin_ = 8 + length_bytes + length;
  if (begin_ > all.size()) throw failure(1, "RC6241: {} ends within its header; write it again", name());
  const std::string_view header = all.substr(8 + length_bytes, length);

  const auto descr = value_of(header, "descr", ",}"), order = value_of(header, "fortran_order", ",}"),
             shape = value_of(header, "shape", ")");
  const auto known = std::find_if(types.begin(), types.end(), [&](const auto& t) {
    return descr && *descr == fmt::format("'{}'", t.first);
  });
  if (known == types.end())
    throw failure(
        1,
        "RC6242: {} has numbers of type {}; expected little-endian float32, float64, uint8, int32 or "
        "int64",
        name(), descr.value_or("unknown"));
  type_ = static_cast<npy_type>(known - types.begin());
  if (order != "False")
    throw failure(1, "RC6243: {} is in column-major order; write numpy.ascontiguousarray of it", name());
  const auto sizes = sizes_of(shape.value_or(""));
  const auto count = sizes && sizes->size() <= most_dims ? product_of(*sizes) : std::nullopt;
  if (!count)
    throw failure(1, "RC6244: {} has the shape {}), which is not valid", name(), shape.value_or("("));
  if (const std::size_t bytes = all.size() - begin_;
      bytes % known->second != 0 || bytes / known->second != *count)
    throw failure(1, "RC6245: {} has {} bytes of numbers; its shape {}) asks for {} numbers of {} bytes",
                  name(), bytes, *shape, *count, known->second);
  shape_ = *sizes;
}

std::string npy_file::shape_text() const { return fmt::format("({})", fmt::join(shape_, ", ")); }

void npy_file::copy(std::uint64_t first, std::uint64_t count, double* to) const {
  const char* const from =
      file_.bytes().data() + begin_ + first * types[static_cast<std::size_t>(type_)].second;
  switch (type_) {
    case npy_type::f32:
      return widen<float>(from, count, to);
    case npy_type::f64:
      return widen<double>(from, count, to);
    case npy_type::u8:
      return widen<std::uint8_t>(from, count, to);
    case npy_type::i32:
      return widen<std::int32_t>(from, count, to);
    case npy_type::i64:
      return widen<std::int64_t>(from, count, to);
  }
}

}  // namespace rankc::runtime
