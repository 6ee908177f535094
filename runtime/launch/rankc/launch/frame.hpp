// SPDX-License-Identifier: Apache-2.0
// The messages of the control plane: frames {magic, kind, number, length, body, code}. The code authenticates
// the rest of the frame with the key of its connection and direction, so that a copied frame is valid nowhere
// else.
#pragma once
#include <rankc/launch/keys.hpp>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace rankc::runtime {

enum class frame_kind : std::uint32_t {
  open,      // the nonces of a rank and of the coordinator, which determine the connection's keys
  hello,     // a rank joins, with the facts that all ranks must share
  show,      // to a rank whose plan differs: send your description
  shown,     // the description
  verdict,   // all ranks have joined and agree, or the reason why they cannot start
  gather,    // a rank's bytes in a named exchange
  gathered,  // the bytes of all ranks
  alive,     // every second: the rank's progress
  failed,    // a rank has failed
  ask_stop,  // a signal asks a rank to stop
  begun,     // to all: report the current step, and begin no other; also the answer
  stop,      // to all: the last step
  bye,       // a rank has ended well; to all: every rank has
};

struct frame {
  frame_kind kind;
  std::string body;
};

inline constexpr std::size_t longest_body = std::size_t{256} << 20;
inline constexpr std::size_t longest_body_of_stranger = 32 * 1024;

/// Makes the frames of one direction. Each carries its number.
class frame_writer {
 public:
  explicit frame_writer(const mac_key& key) : key_(key) {}
  std::string encode(frame_kind, std::string_view body = {});

 private:
  mac_key key_;
  std::uint64_t sent_ = 0;
};

/// The bytes are not a valid frame at this point of the connection.
struct not_a_frame : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Splits one direction's bytes, which arrive in pieces, into frames.
class frame_reader {
 public:
  explicit frame_reader(const mac_key& key) : key_(key) {}
  /// Expect later frames with another key, counted from 0.
  void use(const mac_key& key) {
    key_ = key;
    received_ = 0;
  }
  /// Set the longest body that is accepted.
  void allow(std::size_t body_bytes) { most_ = body_bytes; }
  /// How many bytes may be added before `next` is called.
  std::size_t room() const;
  void add(std::string_view bytes) { bytes_ += bytes; }
  /// Take the next complete frame. Errors: not_a_frame, also for a frame with another key, connection,
  /// direction or number.
  std::optional<frame> next();

 private:
  mac_key key_;
  std::uint64_t received_ = 0;
  std::string bytes_;
  std::size_t most_ = longest_body_of_stranger;
};

/// Writes the fields of a body: numbers of eight bytes, and texts with their lengths.
class body_writer {
 public:
  body_writer& add(std::uint64_t);
  body_writer& add(std::string_view);
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Reads the fields of a body.
/// Errors: not_a_frame if the body is shorter than its fields.
class body_reader {
 public:
  explicit body_reader(std::string_view bytes) : left_(bytes) {}
  std::uint64_t number();
  std::string text();

 private:
  std::string_view left_;
};

}  // namespace rankc::runtime
