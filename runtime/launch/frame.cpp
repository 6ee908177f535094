// SPDX-License-Identifier: Apache-2.0
#include <rankc/launch/frame.hpp>

#include <algorithm>
#include <array>
#include <cstring>

namespace rankc::runtime {
namespace {

constexpr std::uint32_t magic = 0x31'43'4b'52;  // "RKC1": a frame of another version is none
constexpr frame_kind last_kind = frame_kind::bye;

struct header {
  std::uint32_t magic;
  std::uint16_t kind, unused;
  std::uint64_t job;
  std::uint32_t length, checksum;  // the checksum: of the header, with zero in its place, and the body
};
static_assert(sizeof(header) == 24);

/// Source: CRC-32 of IEEE 802.3, reflected.
constexpr auto crc_table = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = (c & 1) != 0 ? 0xEDB88320u ^ (c >> 1) : c >> 1;
    table[i] = c;
  }
  return table;
}();

std::uint32_t checksum_of(header h, std::string_view body) {
  h.checksum = 0;
  std::uint32_t c = ~0u;
  const auto add = [&](std::string_view bytes) {
    for (const char byte : bytes) c = crc_table[(c ^ static_cast<unsigned char>(byte)) & 0xff] ^ (c >> 8);
  };
  add({reinterpret_cast<const char*>(&h), sizeof h});
  add(body);
  return ~c;
}

}  // namespace

std::string encode(const frame& f) {
  header h{magic, static_cast<std::uint16_t>(f.kind), 0, f.job, static_cast<std::uint32_t>(f.body.size()), 0};
  h.checksum = checksum_of(h, f.body);
  return std::string(reinterpret_cast<const char*>(&h), sizeof h) + f.body;
}

std::optional<frame> frame_reader::next() {
  const std::size_t seen = std::min(bytes_.size(), sizeof magic);
  if (std::memcmp(bytes_.data(), &magic, seen) != 0) throw not_a_frame("the bytes are not those of a frame");
  if (bytes_.size() < sizeof(header)) return std::nullopt;
  header h;
  std::memcpy(&h, bytes_.data(), sizeof h);
  if (h.kind > static_cast<std::uint16_t>(last_kind) || h.length > most_)
    throw not_a_frame("a frame of no kind, or too long");
  if (bytes_.size() < sizeof h + h.length) return std::nullopt;
  frame f{static_cast<frame_kind>(h.kind), h.job, bytes_.substr(sizeof h, h.length)};
  if (checksum_of(h, f.body) != h.checksum) throw not_a_frame("a frame whose checksum is not its own");
  bytes_.erase(0, sizeof h + h.length);
  return f;
}

body_writer& body_writer::add(std::uint64_t number) {
  bytes_.append(reinterpret_cast<const char*>(&number), sizeof number);
  return *this;
}

body_writer& body_writer::add(std::string_view text) {
  add(static_cast<std::uint64_t>(text.size()));
  bytes_ += text;
  return *this;
}

std::uint64_t body_reader::number() {
  std::uint64_t n;
  if (left_.size() < sizeof n) throw not_a_frame("a body that ends early");
  std::memcpy(&n, left_.data(), sizeof n);
  left_.remove_prefix(sizeof n);
  return n;
}

std::string body_reader::text() {
  const std::uint64_t size = number();
  if (left_.size() < size) throw not_a_frame("a body that ends early");
  std::string t(left_.substr(0, size));
  left_.remove_prefix(size);
  return t;
}

}  // namespace rankc::runtime
