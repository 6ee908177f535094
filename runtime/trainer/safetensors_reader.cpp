// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/safetensors.hpp>

#include <rankc/launch/refusal.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <system_error>

namespace rankc::runtime {
namespace {

using nlohmann::json;
using element = safetensors_reader::element;
static_assert(std::endian::native == std::endian::little, "safetensors files are little endian");

constexpr std::size_t largest_header = 100'000'000;  // the format's own limit
constexpr std::size_t chunk = std::size_t{1} << 17;  // elements
constexpr const char checksums_key[] = "xxh3";

/// Types of the format, with the bytes of an element. Files of others' have masks and counters beside
/// weights.
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

constexpr const char read_are[] = "read are F32, F64, BF16 and F16";

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

/// a * b, or nothing where it does not fit.
std::optional<std::size_t> product(std::size_t a, std::size_t b) {
  std::size_t result;
  if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
  return result;
}

/// The whole numbers of a JSON array, or nothing where it is something else.
std::optional<std::vector<std::size_t>> whole_numbers(const json& value) {
  if (!value.is_array()) return std::nullopt;
  std::vector<std::size_t> numbers;
  for (const json& number : value) {
    if (!number.is_number_unsigned()) return std::nullopt;
    numbers.push_back(number.get<std::size_t>());
  }
  return numbers;
}

}  // namespace

std::string shape_text(const std::vector<std::size_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

void safetensors_reader::closes::operator()(const int* descriptor) const {
  close(*descriptor);
  delete descriptor;
}

safetensors_reader::safetensors_reader(const std::filesystem::path& file) : name_(file.string()) {
  const int descriptor = open(name_.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw refusal(1, "{}: cannot be read: {}", name_, std::strerror(errno));
  descriptor_.reset(new int(descriptor));
  std::error_code error;
  size_ = std::filesystem::file_size(file, error);
  if (error) throw refusal(1, "{}: cannot be read: {}", name_, error.message());
  read_tensors(read_header());
}

std::string safetensors_reader::read_header() {
  if (size_ < 8)
    throw refusal(1, "{}: holds {} bytes, fewer than the 8 that a safetensors file starts with", name_,
                  size_);
  std::uint64_t length = 0;
  read_bytes(0, &length, 8);
  if (length > largest_header || length > size_ - 8)
    throw refusal(1,
                  "{}: its header should have {} bytes, but {} follow, and {} are the limit; the file is "
                  "truncated or no safetensors file",
                  name_, length, size_ - 8, largest_header);
  std::string header(length, '\0');
  read_bytes(8, header.data(), length);
  data_ = 8 + length;
  return header;
}

void safetensors_reader::read_tensors(const std::string& header) {
  const auto refuse = [&](const std::string& tensor, const std::string& why) {
    return refusal(1, "{}: tensor {}: {}", name_, tensor, why);
  };
  const json root = json::parse(header, nullptr, false);
  if (!root.is_object()) throw refusal(1, "{}: its header is no JSON object; the file is damaged", name_);
  std::size_t covered = 0;
  std::vector<tensor*> in_order;
  for (const auto& [name, value] : root.items()) {
    if (name == "__metadata__") {
      for (const auto& [key, text] : value.items())
        if (text.is_string()) metadata_[key] = text.get<std::string>();
      continue;
    }
    if (!value.is_object() || !value.contains("dtype") || !value["dtype"].is_string())
      throw refuse(name, "has no dtype");
    const auto dtype = value["dtype"].get<std::string>();
    const known_type* type = type_named(dtype);
    if (type == nullptr) throw refuse(name, fmt::format("has dtype {}; {}", dtype, read_are));
    const auto shape = whole_numbers(value.value("shape", json()));
    const auto offsets = whole_numbers(value.value("data_offsets", json()));
    if (!shape) throw refuse(name, "has no shape of whole numbers");
    if (!offsets || offsets->size() != 2) throw refuse(name, "has no two data_offsets");
    const std::size_t begin = (*offsets)[0], end = (*offsets)[1];
    if (begin > end || end > size_ - data_)
      throw refuse(
          name, fmt::format("lies at bytes {} to {}, but the file has {} bytes of data; it is truncated or "
                            "damaged",
                            begin, end, size_ - data_));
    std::optional<std::size_t> count = 1;
    for (const std::size_t extent : *shape)
      if (count) count = product(*count, extent);
    const auto bytes = count ? product(*count, type->width) : std::nullopt;
    if (bytes != end - begin)
      throw refuse(name, fmt::format("has shape {} of {}, which is not the size of its {} bytes",
                                     shape_text(*shape), dtype, end - begin));
    in_order.push_back(&(tensors_[name] = {type->type, *shape, data_ + begin, *count, type->width, {}}));
  }
  std::sort(in_order.begin(), in_order.end(), [](const tensor* a, const tensor* b) {
    return std::pair(a->offset, a->count) < std::pair(b->offset, b->count);
  });
  for (const tensor* t : in_order) {
    if (t->offset != data_ + covered)
      throw refusal(1, "{}: its tensors overlap or leave a hole at byte {} of the data; the file is damaged",
                    name_, std::min(covered, t->offset - data_));
    covered += t->count * t->width;
  }
  if (covered != size_ - data_)
    throw refusal(1, "{}: its tensors take {} bytes, but {} bytes of data follow the header", name_, covered,
                  size_ - data_);
  read_checksums(header, in_order);
}

/// The checksums are one text: that of the header, then those of the tensors as they lie. The header was
/// summed with zeros in place of its own.
void safetensors_reader::read_checksums(std::string header, std::vector<tensor*> in_order) {
  const auto given = metadata_.find(checksums_key);
  if (given == metadata_.end()) return;
  const std::string all = given->second;
  const auto refuse = [&](const std::string& found, const std::string& expected) {
    return refusal(1, "{}: its header's checksum is {}, but it was written with {}; the file is damaged",
                   name_, found, expected);
  };
  header_checksum_ = all.substr(0, 16);
  if (const auto at = header.find(all); at != header.npos)
    header.replace(at, header_checksum_.size(), header_checksum_.size(), '0');
  if (const std::string found = checksum::of(header);
      all.size() != 16 * (1 + in_order.size()) || found != header_checksum_)
    throw refuse(found, header_checksum_);
  for (std::size_t i = 0; i < in_order.size(); ++i) in_order[i]->checksum = all.substr(16 * (i + 1), 16);
}

void safetensors_reader::check(const std::string& name) const {
  const tensor& t = tensors_.at(name);
  const std::size_t width = t.width;
  if (t.type == element::other)
    throw refusal(1, "{}: tensor {}: is no floating point; {}", name_, name, read_are);
  std::vector<unsigned char> bytes(std::min(chunk, t.count) * width);
  std::vector<double> values(std::min(chunk, t.count));
  checksum sum;
  std::string odd;  // the first value that is none
  for (std::size_t first = 0; first < t.count; first += chunk) {
    const std::size_t count = std::min(chunk, t.count - first);
    read_bytes(t.offset + first * width, bytes.data(), count * width);
    sum.add(bytes.data(), count * width);
    decode(bytes.data(), t.type, count, values.data());
    for (std::size_t i = 0; i < count && odd.empty(); ++i)
      if (!std::isfinite(values[i])) odd = fmt::format("element {} is {}", first + i, values[i]);
  }
  if (!t.checksum.empty() && sum.text() != t.checksum)
    throw refusal(1, "{}: tensor {}: its checksum is {}, but it was written with {}; the file is damaged",
                  name_, name, sum.text(), t.checksum);
  if (!odd.empty()) throw refusal(1, "{}: tensor {}: {}, but weights must be finite", name_, name, odd);
}

void safetensors_reader::check() const {
  for (const auto& [name, tensor] : tensors_) check(name);
}

void safetensors_reader::read(const std::string& name, std::size_t first, std::size_t count,
                              double* to) const {
  const tensor& t = tensors_.at(name);
  const std::size_t width = t.width;
  if (t.type == element::other)
    throw refusal(1, "{}: tensor {}: is no floating point; {}", name_, name, read_are);
  std::vector<unsigned char> bytes(count * width);
  read_bytes(t.offset + first * width, bytes.data(), bytes.size());
  decode(bytes.data(), t.type, count, to);
  for (std::size_t i = 0; i < count; ++i)
    if (!std::isfinite(to[i]))
      throw refusal(1, "{}: tensor {}: element {} is {}, but weights must be finite", name_, name, first + i,
                    to[i]);
}

void safetensors_reader::read_bytes(std::size_t offset, void* to, std::size_t bytes) const {
  auto* into = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got = pread(*descriptor_, into, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) throw refusal(1, "{}: cannot be read at byte {}", name_, offset);
    into += got;
    offset += static_cast<std::size_t>(got);
    bytes -= static_cast<std::size_t>(got);
  }
}

}  // namespace rankc::runtime
