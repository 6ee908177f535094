// SPDX-License-Identifier: Apache-2.0
#include <rankc/launch/frame.hpp>

#include <algorithm>
#include <cstring>

namespace rankc::runtime {
namespace {

constexpr std::uint32_t magic = 0x32'43'4b'52;  // "RKC2"; other versions have other numbers
constexpr frame_kind last_kind = frame_kind::bye;

struct header {
  std::uint32_t magic, kind;
  std::uint64_t number, length;  // number: of earlier frames with the same key
};
static_assert(sizeof(header) == 24);

}  // namespace

std::string frame_writer::encode(frame_kind kind, std::string_view body) {
  const header h{magic, static_cast<std::uint32_t>(kind), sent_++, body.size()};
  std::string whole(reinterpret_cast<const char*>(&h), sizeof h);
  whole.append(body);
  return whole.append(bytes_of(mac_of(bytes_of(key_), whole)));
}

std::size_t frame_reader::room() const {
  const std::size_t most = sizeof(header) + most_ + sizeof(mac_key);
  return most - std::min(most, bytes_.size());
}

std::optional<frame> frame_reader::next() {
  const std::size_t seen = std::min(bytes_.size(), sizeof magic);
  if (std::memcmp(bytes_.data(), &magic, seen) != 0) throw not_a_frame("the bytes do not begin as a frame");
  if (bytes_.size() < sizeof(header)) return std::nullopt;
  header h;
  std::memcpy(&h, bytes_.data(), sizeof h);
  if (h.kind > static_cast<std::uint32_t>(last_kind) || h.length > most_)
    throw not_a_frame("a frame of unknown kind, or one that is too long");
  if (h.number != received_) throw not_a_frame("a frame that is repeated, or one that was left out");
  const std::size_t signed_bytes = sizeof h + h.length;
  if (bytes_.size() < signed_bytes + sizeof(mac_key)) return std::nullopt;
  const std::string_view all = bytes_;
  if (!is_same(mac_of(bytes_of(key_), all.substr(0, signed_bytes)),
               all.substr(signed_bytes, sizeof(mac_key))))
    throw not_a_frame("a frame with the code of another key");
  frame f{static_cast<frame_kind>(h.kind), bytes_.substr(sizeof h, h.length)};
  ++received_;
  bytes_.erase(0, signed_bytes + sizeof(mac_key));
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
