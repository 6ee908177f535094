// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/tensorboard.hpp>

#include "../core/host_name.hpp"
#include <rankc/launch/say_error.hpp>

#include <fmt/format.h>
#include <unistd.h>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>

namespace rankc::runtime {
namespace {

constexpr std::array<std::uint32_t, 256> crc_table = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t c = byte;
    for (int bit = 0; bit < 8; ++bit) c = c & 1 ? c >> 1 ^ 0x82F63B78u : c >> 1;
    table[byte] = c;
  }
  return table;
}();

template <class T>
std::string bytes_of(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

/// Fields of protocol buffers: a key of number and wire type, then the value.
std::string varint(std::uint64_t n) {
  std::string out;
  for (; n >= 128; n >>= 7) out += static_cast<char>(n | 128);
  return out + static_cast<char>(n);
}
std::string fixed64(int field, double value) { return varint(field << 3 | 1) + bytes_of(value); }
std::string fixed32(int field, float value) { return varint(field << 3 | 5) + bytes_of(value); }
std::string number(int field, std::int64_t value) {
  return varint(field << 3) + varint(static_cast<std::uint64_t>(value));
}
std::string text(int field, std::string_view value) {
  return varint(field << 3 | 2) + varint(value.size()) + std::string(value);
}

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

constexpr std::string_view name_begin = "events.out.tfevents.";

bool has_curves(const std::filesystem::path& folder) {
  std::error_code error;  // a folder that cannot be read is refused when the file is created
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.path().filename().string().starts_with(name_begin)) return true;
  return false;
}

/// A new file name in a folder, which is created if needed.
std::filesystem::path file_in(const std::filesystem::path& folder) {
  static std::atomic<int> count{0};
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) fail_to_write(folder, 1, error.value());
  return folder / fmt::format("{}{:.0f}.{}.{}.{}", name_begin, wall_time(), host_name(), getpid(), count++);
}

constexpr std::int64_t session_start = 1;  // SessionLog's status

}  // namespace

std::uint32_t masked_crc32c(std::string_view bytes) {
  std::uint32_t c = ~0u;
  for (const char byte : bytes) c = crc_table[(c ^ static_cast<unsigned char>(byte)) & 255] ^ c >> 8;
  c = ~c;
  return (c >> 15 | c << 17) + 0xA282EAD8u;
}

// Event: 1 wall_time, 2 step, 3 file_version, 5 summary, 7 session_log; Summary: 1 value; Value: 1 tag,
// 2 simple_value; SessionLog: 1 status.
tensorboard_file::tensorboard_file(const std::filesystem::path& folder, std::int64_t first_step)
    : had_curves_(has_curves(folder)), out_(file_in(folder), 1) {
  write_record(fixed64(1, wall_time()) + text(3, "brain.Event:2"));
  if (had_curves_ || first_step > 1)
    write_record(fixed64(1, wall_time()) + number(2, first_step) + text(7, number(1, session_start)));
}

void tensorboard_file::write(std::int64_t step, std::span<const std::pair<std::string_view, double>> values) {
  std::string summary;
  for (const auto& [name, value] : values)
    summary += text(1, text(1, name) + fixed32(2, static_cast<float>(value)));
  write_record(fixed64(1, wall_time()) + number(2, step) + text(5, summary));
}

void tensorboard_file::write_record(const std::string& bytes) {
  if (failed_) return;
  const std::string length = bytes_of(std::uint64_t{bytes.size()});
  try {
    out_.append_whole(length + bytes_of(masked_crc32c(length)) + bytes + bytes_of(masked_crc32c(bytes)));
  } catch (const failure& f) {
    failed_ = true;
    say_error("{}; training continues without it\n", f.what());
  }
}

}  // namespace rankc::runtime
