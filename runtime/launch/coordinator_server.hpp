// SPDX-License-Identifier: Apache-2.0
// The coordinator's thread: one event loop over all connections, which never blocks on one of them.
// coordinator_server.cpp has the connections, coordinator_start.cpp the start of a job, and
// coordinator_causes.cpp its failures.
#pragma once
#include <rankc/launch/coordinator.hpp>
#include <rankc/launch/frame.hpp>

#include "watch.hpp"

#include <list>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace rankc::runtime {

class coordinator::server {
 public:
  server(std::vector<socket_handle> listeners, int world, const mac_key& job, const limits&,
         std::function<void(const std::string&)> log, std::shared_ptr<board> ends);
  /// Serve until all ranks have left; once `ending` is set, for two more seconds at most.
  void serve(const std::atomic<bool>& ending);
  /// Close all connections, after `serve` has failed. The ranks then end.
  void close();
  /// Called by another thread: look at `ending` now.
  void wake();

 private:
  /// A client. It is a stranger until it has sent a frame with the job's key; its hello makes it a rank.
  struct connection {
    socket_handle socket;
    std::string address;
    deadline since, last_heard;
    frame_reader reader;
    frame_writer writer;
    std::string out{};  // bytes that the socket has no room for yet
    bool is_stranger = true;
    std::optional<hello> who{};
    bool left = false, closing = false, gone = false;
  };
  struct exchange {
    deadline started;
    std::map<int, std::string> from;  // by rank
  };
  /// A failure that is a consequence of another. It counts as the cause if no other arrives soon.
  struct suspicion {
    int rank;
    std::string text;
    deadline until;
  };
  /// A failure. The coordinator reports it to all ranks after a short wait for simultaneous ones.
  struct found_cause {
    int rank, code;
    std::string text;
    bool is_loss;  // the connection was lost: the launcher may know how the process ended
  };
  enum class phase { joining, showing, running, over };

  void wait_for_events(bool may_be_woken);
  void accept_all();
  template <class Is>
  void close_oldest(std::size_t most, const Is& is);
  void read(connection&);
  void write(connection&);
  void take(connection&, const frame&);
  void take_from_rank(connection&, const frame&);
  void open(connection&, const frame&);
  void turn_away(connection&);
  void look_at_clock();
  void send(connection&, frame_kind, std::string_view body = {});

  void take_hello(connection&, const frame&);
  void judge();
  bool is_decided(const std::vector<hello>& joined, deadline now);
  void ask_for_listings(deadline now);
  void say_who_is_missing(const std::vector<hello>& joined);
  void give_verdict(std::vector<hello> joined);
  void tell_verdict(connection&, int code, const std::string& text, bool is_shared);
  std::string data_address_of(const connection&) const;

  void take_part(const connection&, const std::string& body);
  void take_failure(const connection&, body_reader&);
  void take_stop_signal(std::uint64_t signal);
  void take_begun(const connection&, std::uint64_t step);
  void look_at_ranks(deadline now);
  void look_at_exchanges(deadline now);
  void look_at_causes(deadline now);
  std::string last_position(const connection&) const;
  void lose(connection&, const std::string& text);
  void add_cause(found_cause);
  std::string name_of(int rank) const;
  void fail(int rank, int code, const std::string& text);
  void leave(connection&);
  template <class Visit>
  void for_each_rank(const Visit& visit) {
    for (connection& c : connections_)
      if (c.who && !c.gone) visit(c);
  }

  std::vector<socket_handle> listeners_;
  const socket_handle woken_;
  const int world_;
  const mac_key job_;
  const limits limits_;
  const std::function<void(const std::string&)> log_;
  phase phase_ = phase::joining;
  deadline started_, judged_by_, looked_at_, said_alive_, accepts_from_{};
  std::list<connection> connections_;    // the oldest first
  std::set<std::string> nonces_;         // ranks' nonces; none is accepted twice
  std::map<int, std::string> listings_;  // by rank
  std::size_t asked_ = 0;                // number of ranks that must send their listing
  std::map<std::string, exchange> exchanges_;
  std::optional<suspicion> suspicion_;
  std::vector<found_cause> causes_;
  deadline causes_since_{};
  const std::shared_ptr<board> ends_;
  std::map<int, std::string> names_;  // by rank
  watch watch_;
  std::string verdict_;  // the reason why the start was refused
  int verdict_code_ = 0;
  std::map<int, std::int64_t> begun_;  // by rank: its step when a stop is proposed
  int stop_signal_ = 0;
  int left_ = 0;  // ranks that have ended well
  bool has_turned_away_ = false, has_failed_ = false, has_said_who_is_missing_ = false;
};

}  // namespace rankc::runtime
