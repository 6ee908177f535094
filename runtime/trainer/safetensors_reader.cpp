// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/safetensors.hpp>

#include <rankc/trainer/model_files.hpp>

#include "json/json_file.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>

namespace rankc::runtime {
namespace {

using nlohmann::json;
using element = safetensors_reader::element;
static_assert(std::endian::native == std::endian::little, "safetensors files are little endian");

constexpr std::size_t largest_header = 100'000'000;  // the format's own limit
constexpr std::size_t chunk = std::size_t{1} << 17;  // elements
constexpr const char checksums_key[] = "xxh3";

/// The format's types. Files of other programs may also hold masks and counters.
struct known_type {
  const char* name;
  element type;
  std::size_t width;
};
constexpr known_type known_types[]{
    {"F32", element::f32, 4},   {"F64", element::f64, 8},    {"F16", element::f16, 2},
    {"BF16", element::bf16, 2}, {"BOOL", element::other, 1}, {"U8", element::other, 1},
    {"I8", element::other, 1},  {"I16", element::other, 2},  {"U16", element::other, 2},
    {"I32", element::other, 4}, {"U32", element::other, 4},  {"I64", element::other, 8},
    {"U64", element::other, 8}};

const known_type* type_named(const std::string& name) {
  const auto at = std::find_if(std::begin(known_types), std::end(known_types),
                               [&](const known_type& t) { return t.name == name; });
  return at == std::end(known_types) ? nullptr : at;
}

double from_half(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  double size = std::ldexp(1024 + fraction, exponent - 25);
  if (exponent == 0) size = std::ldexp(fraction, -24);
  else if (exponent == 31) size = fraction ? NAN : INFINITY;
  return bits & 0x8000 ? -size : size;
}

template <class Bits>
Bits load(const unsigned char* from) {
  Bits bits;
  std::memcpy(&bits, from, sizeof bits);
  return bits;
}

template <class Value>
void decode(const unsigned char* from, std::size_t width, std::size_t count, double* to, const Value& value) {
  for (std::size_t i = 0; i < count; ++i) to[i] = value(from + i * width);
}

void decode(const unsigned char* from, element type, std::size_t count, double* to) {
  switch (type) {
    case element::f32:
      return decode(from, 4, count, to, [](const unsigned char* at) -> double { return load<float>(at); });
    case element::f64:
      return decode(from, 8, count, to, [](const unsigned char* at) { return load<double>(at); });
    case element::f16:
      return decode(from, 2, count, to,
                    [](const unsigned char* at) { return from_half(load<std::uint16_t>(at)); });
    case element::bf16:
      return decode(from, 2, count, to, [](const unsigned char* at) -> double {
        return std::bit_cast<float>(static_cast<std::uint32_t>(load<std::uint16_t>(at)) << 16);
      });
    case element::other:
      break;
  }
}

/// a * b, or empty if it overflows.
std::optional<std::size_t> product(std::size_t a, std::size_t b) {
  std::size_t result;
  if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
  return result;
}

void refuse_unless_floating(const std::string& file, const std::string& name,
                            const safetensors_reader::tensor& t) {
  if (t.type == element::other)
    throw failure(1, "RC6613: {}: tensor {} is not floating point; expected F32, F64, BF16 or F16", file,
                  name);
}

failure not_finite(const std::string& file, const std::string& name, std::size_t element, double value) {
  return {1, "RC6614: {}: element {} of tensor {} is {}; weights must be finite", file, element, name, value};
}

}  // namespace

std::string shape_text(const std::vector<std::size_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

safetensors_reader::safetensors_reader(const std::filesystem::path& file)
    : name_(file.string()), file_(file) {
  if (!file_.problem().empty()) fail_to_read(name_, 1, file_.problem());
  size_ = file_.size();
  read_tensors(read_header());
}

std::string safetensors_reader::read_header() {
  if (size_ < 8)
    throw failure(1, "RC6600: {} has {} bytes, fewer than the 8 at the start of each safetensors file", name_,
                  size_);
  std::uint64_t length = 0;
  read_bytes(0, &length, 8);
  if (length > largest_header)
    throw failure(1, "RC6601: {} states a header of {} bytes; at most {} are allowed in a safetensors file",
                  name_, length, largest_header);
  if (length > size_ - 8)
    throw failure(1,
                  "RC6602: {} states a header of {} bytes, but only {} follow; it is truncated or not a "
                  "safetensors file",
                  name_, length, size_ - 8);
  std::string header(length, '\0');
  read_bytes(8, header.data(), length);
  data_ = 8 + length;
  return header;
}

void safetensors_reader::read_tensors(const std::string& header) {
  const auto root = parse_json<json>(header, "the header of " + name_, 1, header_limits);
  if (!root.is_object())
    throw failure(1, "RC6603: the header of {} is not a JSON object; the file is damaged", name_);
  std::size_t covered = 0;
  std::vector<tensor*> in_order;
  for (const auto& [name, value] : root.items()) {
    if (name == "__metadata__") {
      for (const auto& [key, text] : value.items())
        if (const auto words = value_as<std::string>(text)) metadata_[key] = *words;
      continue;
    }
    const auto dtype = value_as<std::string>(value_of(value, "dtype"));
    if (!dtype) throw failure(1, "RC6604: {}: tensor {} has no dtype", name_, name);
    const known_type* type = type_named(*dtype);
    if (type == nullptr)
      throw failure(1, "RC6605: {}: tensor {} has the unknown dtype {}", name_, name, *dtype);
    const auto shape = value_as<std::vector<std::size_t>>(value_of(value, "shape"));
    const auto offsets = value_as<std::vector<std::size_t>>(value_of(value, "data_offsets"));
    if (!shape)
      throw failure(1, "RC6606: {}: the shape of tensor {} is not a list of whole numbers", name_, name);
    if (!offsets || offsets->size() != 2)
      throw failure(1, "RC6607: {}: the data_offsets of tensor {} are not two whole numbers", name_, name);
    const std::size_t begin = (*offsets)[0], end = (*offsets)[1];
    if (begin > end || end > size_ - data_)
      throw failure(
          1,
          "RC6608: {}: tensor {} is at bytes {} to {} of {} bytes of data; the file is truncated or damaged",
          name_, name, begin, end, size_ - data_);
    std::optional<std::size_t> count = 1;
    for (const std::size_t extent : *shape)
      if (count) count = product(*count, extent);
    const auto bytes = count ? product(*count, type->width) : std::nullopt;
    if (bytes != end - begin)
      throw failure(1, "RC6609: {}: tensor {} has shape {} of {}, which does not fit its {} bytes", name_,
                    name, shape_text(*shape), *dtype, end - begin);
    in_order.push_back(&(tensors_[name] = {type->type, *shape, data_ + begin, *count, type->width, {}}));
  }
  std::sort(in_order.begin(), in_order.end(), [](const tensor* a, const tensor* b) {
    return std::pair(a->offset, a->count) < std::pair(b->offset, b->count);
  });
  for (const tensor* t : in_order) {
    if (t->offset != data_ + covered)
      throw failure(1,
                    "RC6610: {}: tensors overlap or leave a hole at byte {} of the data; the file is damaged",
                    name_, std::min(covered, t->offset - data_));
    covered += t->count * t->width;
  }
  if (covered != size_ - data_)
    throw failure(1, "RC6611: {}: the tensors take {} bytes, but {} bytes of data follow the header", name_,
                  covered, size_ - data_);
  read_checksums(header, in_order);
}

/// The checksums are one text: the header's, then the tensors' in file order. The writer computed the
/// header's checksum with zeros in its place.
void safetensors_reader::read_checksums(std::string header, std::vector<tensor*> in_order) {
  const auto given = metadata_.find(checksums_key);
  if (given == metadata_.end()) return;
  const std::string all = given->second;
  header_checksum_ = all.substr(0, 16);
  if (const auto at = header.find(all); at != header.npos)
    header.replace(at, header_checksum_.size(), header_checksum_.size(), '0');
  if (const std::string found = checksum::of(header);
      all.size() != 16 * (1 + in_order.size()) || found != header_checksum_)
    throw failure(1, "RC6612: the header of {} has checksum {}, but was written with {}; the file is damaged",
                  name_, found, header_checksum_);
  for (std::size_t i = 0; i < in_order.size(); ++i) in_order[i]->checksum = all.substr(16 * (i + 1), 16);
}

void safetensors_reader::check(const std::string& name) const {
  const tensor& t = tensors_.at(name);
  const std::size_t width = t.width;
  refuse_unless_floating(name_, name, t);
  std::vector<unsigned char> bytes(std::min(chunk, t.count) * width);
  std::vector<double> values(std::min(chunk, t.count));
  checksum sum;
  std::optional<failure> odd;  // the first value that is not finite
  for (std::size_t first = 0; first < t.count; first += chunk) {
    const std::size_t count = std::min(chunk, t.count - first);
    read_bytes(t.offset + first * width, bytes.data(), count * width);
    sum.add(bytes.data(), count * width);
    decode(bytes.data(), t.type, count, values.data());
    for (std::size_t i = 0; i < count && !odd; ++i)
      if (!std::isfinite(values[i])) odd = not_finite(name_, name, first + i, values[i]);
  }
  if (!t.checksum.empty() && sum.text() != t.checksum)
    throw failure(1, "RC6615: {}: tensor {} has checksum {}, but was written with {}; the file is damaged",
                  name_, name, sum.text(), t.checksum);
  if (odd) throw *odd;
}

void safetensors_reader::check() const {
  for (const auto& [name, tensor] : tensors_) check(name);
}

void safetensors_reader::read(const std::string& name, std::size_t first, std::size_t count,
                              double* to) const {
  const tensor& t = tensors_.at(name);
  const std::size_t width = t.width;
  refuse_unless_floating(name_, name, t);
  std::vector<unsigned char> bytes(count * width);
  read_bytes(t.offset + first * width, bytes.data(), bytes.size());
  decode(bytes.data(), t.type, count, to);
  for (std::size_t i = 0; i < count; ++i)
    if (!std::isfinite(to[i])) throw not_finite(name_, name, first + i, to[i]);
}

void safetensors_reader::read_bytes(std::size_t offset, void* to, std::size_t bytes) const {
  const ssize_t got = read_fully(file_.descriptor(), offset, to, bytes);
  if (got < 0)
    throw failure(1, "RC6616: {} cannot be read at byte {}: {}", name_, offset, std::strerror(errno));
  if (static_cast<std::size_t>(got) < bytes)
    throw failure(1, "RC6617: {} ends at byte {}; it has been truncated since it was opened", name_,
                  offset + static_cast<std::size_t>(got));
}

}  // namespace rankc::runtime
