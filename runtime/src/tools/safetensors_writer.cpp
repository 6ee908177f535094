// SPDX-License-Identifier: Apache-2.0
#include <rankc/runtime/tools/safetensors.hpp>

#include "refusal.hpp"
#include <rankc/runtime/bf16.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace rankc::runtime {
namespace {

constexpr const char* names[]{"F32", "F64", "BF16"};  // of dtypes
constexpr const char no_checksum[] = "0000000000000000";

}  // namespace

safetensors_writer::safetensors_writer(const std::filesystem::path& file, const std::vector<tensor>& tensors,
                                       dtype type, text_map metadata)
    : name_(file.string()), file_(std::fopen(name_.c_str(), "wb"), &std::fclose), type_(type) {
  if (!file_) fail();
  metadata["checksum"] = no_checksum;
  nlohmann::ordered_json root;
  root["__metadata__"] = metadata;
  for (const tensor& t : tensors) {
    std::size_t bytes = size_of(type);
    for (const std::size_t extent : t.shape) bytes *= extent;
    root[t.name] = {{"dtype", names[static_cast<int>(type)]},
                    {"shape", t.shape},
                    {"data_offsets", {bytes_left_, bytes_left_ + bytes}}};
    bytes_left_ += bytes;
  }
  std::string header = root.dump();
  header.append((8 - header.size() % 8) % 8, ' ');  // the data then starts at a multiple of 8
  const std::string key = "\"checksum\":\"";
  checksum_offset_ = 8 + header.find(key) + key.size();
  const std::uint64_t length = header.size();
  write(&length, sizeof length);
  write(header.data(), header.size());
  sum_.add(header);
}

void safetensors_writer::append(const double* values, std::size_t count) {
  const std::size_t bytes = count * size_of(type_);
  buffer_.resize(std::max(buffer_.size(), bytes));
  const auto put = [&](std::size_t i, const auto& value) { std::memcpy(buffer_.data() + i * sizeof value, &value, sizeof value); };
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = static_cast<float>(values[i]);
    if (type_ == dtype::f64) put(i, values[i]);
    else if (type_ == dtype::f32) put(i, value);
    else put(i, rounded_to_nearest(value).bits);
  }
  write(buffer_.data(), bytes);
  sum_.add(buffer_.data(), bytes);
  bytes_left_ -= bytes;
}

void safetensors_writer::close() {
  if (bytes_left_ != 0) throw refusal(65, "{}: {} bytes of its tensors were never given", name_, bytes_left_);
  const std::string digits = sum_.text();
  if (std::fseek(file_.get(), static_cast<long>(checksum_offset_), SEEK_SET) != 0) fail();
  write(digits.data(), digits.size());
  if (std::fflush(file_.get()) != 0 || fsync(fileno(file_.get())) != 0) fail();
  if (std::fclose(file_.release()) != 0) fail();
}

void safetensors_writer::write(const void* data, std::size_t bytes) {
  if (std::fwrite(data, 1, bytes, file_.get()) != bytes) fail();
}

void safetensors_writer::fail() const {
  throw refusal(65, "{}: cannot be written: {}", name_, std::strerror(errno));
}

}  // namespace rankc::runtime
