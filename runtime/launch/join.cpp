// SPDX-License-Identifier: Apache-2.0
#include <rankc/launch/join.hpp>

#include <rankc/launch/limits.hpp>
#include <rankc/runtime/failure.hpp>

#include <algorithm>
#include <optional>
#include <thread>

namespace rankc::runtime {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

/// The first frame that arrives; empty if the connection ends, if bytes arrive that are no frame, or at the
/// deadline.
std::optional<frame> receive_frame(const socket_handle& s, frame_reader& reader, deadline until,
                                   const on_failed_try& waits) try {
  for (;;) {
    if (auto f = reader.next()) return f;
    std::string bytes;
    if (!wait_for_bytes(s, std::min<deadline>(until, clock::now() + 1s))) {
      if (clock::now() >= until) return std::nullopt;
      if (waits) waits("it does not answer");
    } else if (receive_into(s, bytes, reader.room()) == received::end) {
      return std::nullopt;
    }
    reader.add(bytes);
  }
} catch (const not_a_frame&) {
  return std::nullopt;
}

std::optional<coordinator_link> open_link(socket_handle socket, const mac_key& job, deadline until,
                                          const on_failed_try& waits) {
  const std::string mine = random_nonce();
  coordinator_link link{std::move(socket), frame_reader(answer_key(job, mine)),
                        frame_writer(opening_key(job))};
  if (!send_all(link.socket, link.to_coordinator.encode(frame_kind::open, mine), until)) return std::nullopt;
  const auto answer = receive_frame(link.socket, link.from_coordinator, until, waits);
  if (!answer || answer->kind != frame_kind::open || answer->body.size() != nonce_bytes) return std::nullopt;
  const connection_keys keys = keys_of_connection(job, mine, answer->body);
  link.from_coordinator.use(keys.to_rank);
  link.from_coordinator.allow(longest_body);
  link.to_coordinator = frame_writer(keys.to_coordinator);
  return link;
}

}  // namespace

coordinator_link join_coordinator(const std::string& host, int port, const mac_key& job, deadline until,
                                  const on_failed_try& failed) {
  const auto start = clock::now();
  auto pause = 20ms;
  for (int tries = 1;; ++tries) {
    if (auto link = open_link(connect_to(host, port, until, failed), job, until, failed))
      return std::move(*link);
    if (clock::now() + pause >= until)
      throw failure(75,
                    "RC5325: the program at {} port {} did not identify itself as rank 0 of this job in {} "
                    "s, {} tries: it belongs to another job, has another RANKC_SECRET, or is not a program "
                    "of rankc; set MASTER_PORT to a free port, or RANKC_SECRET to one value on all ranks",
                    host, port, whole_seconds(clock::now() - start), tries);
    if (failed) failed("it does not identify itself as rank 0 of this job");
    std::this_thread::sleep_for(pause);
    pause = std::min<std::chrono::milliseconds>(pause * 2, 500ms);
  }
}

}  // namespace rankc::runtime
