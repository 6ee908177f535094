// SPDX-License-Identifier: Apache-2.0
#include <rankc/runtime/tools/safetensors.hpp>

#include "refusal.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <algorithm>
#include <bit>
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
constexpr std::size_t chunk = std::size_t{1} << 20;

std::optional<element> element_of(const std::string& dtype) {
  if (dtype == "F32") return element::f32;
  if (dtype == "F64") return element::f64;
  if (dtype == "F16") return element::f16;
  if (dtype == "BF16") return element::bf16;
  return std::nullopt;
}

std::size_t bytes_of(element type) { return type == element::f64 ? 8 : type == element::f32 ? 4 : 2; }

double from_half(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  const double size = exponent == 0    ? std::ldexp(fraction, -24)
                      : exponent == 31 ? (fraction ? NAN : INFINITY)
                                       : std::ldexp(1024 + fraction, exponent - 25);
  return bits & 0x8000 ? -size : size;
}

template <class Bits>
Bits load(const unsigned char* from) {
  Bits bits;
  std::memcpy(&bits, from, sizeof bits);
  return bits;
}

double value_at(const unsigned char* from, element type) {
  switch (type) {
    case element::f32:
      return load<float>(from);
    case element::f64:
      return load<double>(from);
    case element::f16:
      return from_half(load<std::uint16_t>(from));
    case element::bf16:
      return std::bit_cast<float>(static_cast<std::uint32_t>(load<std::uint16_t>(from)) << 16);
  }
  return 0;
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

safetensors_reader::safetensors_reader(const std::filesystem::path& file) : name_(file.string()) {
  std::error_code error;
  size_ = std::filesystem::file_size(file, error);
  if (error) throw refusal(1, "{}: cannot be read: {}", name_, error.message());
  in_.open(file, std::ios::binary);
  const std::string header = read_header();
  read_tensors(header);
  check_checksum(header);
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
  std::vector<const tensor*> in_order;
  for (const auto& [name, value] : root.items()) {
    if (name == "__metadata__") {
      for (const auto& [key, text] : value.items())
        if (text.is_string()) metadata_[key] = text.get<std::string>();
      continue;
    }
    if (!value.is_object() || !value.contains("dtype") || !value["dtype"].is_string())
      throw refuse(name, "has no dtype");
    const auto dtype = value["dtype"].get<std::string>();
    const auto type = element_of(dtype);
    if (!type) throw refuse(name, fmt::format("has dtype {}; read are F32, F64, BF16 and F16", dtype));
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
    const auto bytes = count ? product(*count, bytes_of(*type)) : std::nullopt;
    if (bytes != end - begin)
      throw refuse(name, fmt::format("has shape {} of {}, which is not the size of its {} bytes",
                                     shape_text(*shape), dtype, end - begin));
    in_order.push_back(&(tensors_[name] = {*type, *shape, data_ + begin, *count}));
  }
  std::sort(in_order.begin(), in_order.end(), [](const tensor* a, const tensor* b) {
    return std::pair(a->offset, a->count) < std::pair(b->offset, b->count);
  });
  for (const tensor* t : in_order) {
    if (t->offset != data_ + covered)
      throw refusal(1, "{}: its tensors overlap or leave a hole at byte {} of the data; the file is damaged",
                    name_, std::min(covered, t->offset - data_));
    covered += t->count * bytes_of(t->type);
  }
  if (covered != size_ - data_)
    throw refusal(1, "{}: its tensors take {} bytes, but {} bytes of data follow the header", name_, covered,
                  size_ - data_);
}

void safetensors_reader::check_checksum(std::string header) {
  const auto expected = metadata_.find("checksum");
  if (expected == metadata_.end()) return;
  const std::string& digits = expected->second;
  // The header was summed with zeros in place of the checksum, which was not known yet.
  if (const auto at = header.find(digits); !digits.empty() && at != std::string::npos)
    header.replace(at, digits.size(), digits.size(), '0');
  checksum sum;
  sum.add(header);
  buffer_.resize(chunk);
  for (std::size_t offset = data_; offset < size_; offset += chunk) {
    const std::size_t bytes = std::min(chunk, size_ - offset);
    read_bytes(offset, buffer_.data(), bytes);
    sum.add(buffer_.data(), bytes);
  }
  if (sum.text() != digits)
    throw refusal(1, "{}: its checksum is {}, but it was written with {}; the file is damaged", name_,
                  sum.text(), digits);
}

void safetensors_reader::read(const std::string& name, std::size_t first, std::size_t count, double* to) {
  const tensor& t = tensors_.at(name);
  const std::size_t width = bytes_of(t.type);
  buffer_.resize(std::max(buffer_.size(), count * width));
  read_bytes(t.offset + first * width, buffer_.data(), count * width);
  for (std::size_t i = 0; i < count; ++i) {
    to[i] = value_at(buffer_.data() + i * width, t.type);
    if (!std::isfinite(to[i]))
      throw refusal(1, "{}: tensor {}: element {} is {}, but weights must be finite", name_, name, first + i,
                    to[i]);
  }
}

void safetensors_reader::read_bytes(std::size_t offset, void* to, std::size_t bytes) {
  in_.seekg(static_cast<std::streamoff>(offset));
  if (!in_ || (bytes > 0 && !in_.read(static_cast<char*>(to), static_cast<std::streamsize>(bytes))))
    throw refusal(1, "{}: cannot be read at byte {}", name_, offset);
}

}  // namespace rankc::runtime
