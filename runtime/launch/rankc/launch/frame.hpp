// SPDX-License-Identifier: Apache-2.0
// What processes say to each other over a socket: frames {magic, kind, job, length, checksum, body}.
#pragma once
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace rankc::runtime {

enum class frame_kind : std::uint16_t {
  hello,     // a rank is there, and what must agree with the others'
  show,      // to a rank whose plan differs: its description is wanted
  shown,     // that description
  verdict,   // all are there and agree; or why not
  gather,    // a rank's bytes under a name
  gathered,  // those of all
  alive,     // every second, with the rank's progress words
  failed,    // a rank has failed
  ask_stop,  // a rank is told by a signal to stop
  begun,     // to all: say which step has begun, and begin no other; the answer
  stop,      // to all: the last step
  bye,       // a rank has ended well; to all: all have
};

struct frame {
  frame_kind kind;
  std::uint64_t job = 0;  // of the job that it is from
  std::string body;
};

std::string encode(const frame&);

/// What has come is no frame.
struct not_a_frame : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Finds the frames in what arrives in pieces.
class frame_reader {
 public:
  /// A longer body is refused as none.
  void allow(std::size_t body_bytes) { most_ = body_bytes; }
  void add(std::string_view bytes) { bytes_ += bytes; }
  /// Errors: not_a_frame.
  std::optional<frame> next();

 private:
  std::string bytes_;
  std::size_t most_ = 64 * 1024;
};

/// The fields of a body, one after the other: numbers of eight bytes, and texts with their lengths.
class body_writer {
 public:
  body_writer& add(std::uint64_t);
  body_writer& add(std::string_view);
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Errors: not_a_frame where the body is shorter than its fields.
class body_reader {
 public:
  explicit body_reader(std::string_view bytes) : left_(bytes) {}
  std::uint64_t number();
  std::string text();

 private:
  std::string_view left_;
};

}  // namespace rankc::runtime
