// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/safetensors.hpp>

#include <rankc/runtime/bf16.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <algorithm>
#include <cstdint>
#include <cstring>

namespace rankc::runtime {
namespace {

constexpr const char no_checksum[] = "0000000000000000";

std::size_t bytes_of(const safetensors_writer::tensor& t) { return t.count() * size_of(t.type); }

template <class To, class Round>
void encode(const double* values, std::size_t count, unsigned char* to, const Round& rounded) {
  for (std::size_t i = 0; i < count; ++i) {
    const To value = rounded(values[i]);
    std::memcpy(to + i * sizeof value, &value, sizeof value);
  }
}

}  // namespace

const char* name_of(dtype type) {
  if (type == dtype::f32) return "F32";
  return type == dtype::f64 ? "F64" : "BF16";
}

void encode(const double* values, std::size_t count, dtype type, unsigned char* to) {
  if (type == dtype::f64) std::memcpy(to, values, count * sizeof(double));
  else if (type == dtype::f32)
    encode<float>(values, count, to, [](double x) { return static_cast<float>(x); });
  else
    encode<std::uint16_t>(values, count, to,
                          [](double x) { return rounded_to_nearest(static_cast<float>(x)).bits; });
}

std::size_t safetensors_writer::tensor::count() const {
  std::size_t elements = 1;
  for (const std::size_t extent : shape) elements *= extent;
  return elements;
}

safetensors_writer::safetensors_writer(const std::filesystem::path& file, std::vector<tensor> tensors,
                                       text_map metadata)
    : name_(file.string()), tensors_(std::move(tensors)), metadata_(std::move(metadata)), file_(file) {
  checksums_.assign(tensors_.size(), no_checksum);
  const std::string text = header(no_checksum);
  const std::uint64_t length = text.size();
  file_.append(&length, sizeof length);
  file_.append(text.data(), text.size());
  if (!tensors_.empty()) bytes_left_ = bytes_of(tensors_.front());
}

std::string safetensors_writer::header(const std::string& of_header) const {
  nlohmann::ordered_json root;
  root["__metadata__"] = metadata_;
  root["__metadata__"]["xxh3"] = fmt::format("{}{}", of_header, fmt::join(checksums_, ""));
  std::size_t offset = 0;
  for (const tensor& t : tensors_) {
    root[t.name] = {
        {"dtype", name_of(t.type)}, {"shape", t.shape}, {"data_offsets", {offset, offset + bytes_of(t)}}};
    offset += bytes_of(t);
  }
  std::string text = root.dump();
  text.append((8 - text.size() % 8) % 8, ' ');  // aligns the data to 8 bytes
  return text;
}

void safetensors_writer::append(const double* values, std::size_t count) {
  while (count > 0 && next_ < tensors_.size()) {
    const dtype type = tensors_[next_].type;
    const std::size_t some = std::min(count, bytes_left_ / size_of(type)), bytes = some * size_of(type);
    buffer_.resize(std::max(buffer_.size(), bytes));
    encode(values, some, type, buffer_.data());
    append_stored(buffer_.data(), bytes);
    values += some;
    count -= some;
  }
}

void safetensors_writer::append_stored(const void* data, std::size_t bytes) {
  const auto* from = static_cast<const char*>(data);
  file_.append(from, bytes);
  for (bool whole = true; whole && next_ < tensors_.size();) {
    const std::size_t some = std::min(bytes, bytes_left_);
    sum_.add(from, some);
    from += some;
    bytes -= some;
    bytes_left_ -= some;
    whole = bytes_left_ == 0;
    if (!whole) break;
    checksums_[next_++] = sum_.text();
    sum_ = {};
    if (next_ < tensors_.size()) bytes_left_ = bytes_of(tensors_[next_]);
  }
}

std::string safetensors_writer::close() {
  append_stored(nullptr, 0);  // adds the checksums of the last tensors, if these have no elements
  std::size_t missing = bytes_left_;
  for (std::size_t i = next_ + 1; i < tensors_.size(); ++i) missing += bytes_of(tensors_[i]);
  if (missing != 0)
    throw failure(checkpoint_code, "RC6620: {} lacks the last {} bytes of its tensors", name_, missing);
  const std::string of_header = checksum::of(header(no_checksum));
  file_.replace(sizeof(std::uint64_t), header(of_header));
  file_.close();
  return of_header;
}

}  // namespace rankc::runtime
