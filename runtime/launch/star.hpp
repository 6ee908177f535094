// SPDX-License-Identifier: Apache-2.0
// What the coordinator's thread does: one loop over all connections, which waits for nobody in particular.
#pragma once
#include <rankc/launch/coordinator.hpp>
#include <rankc/launch/frame.hpp>

#include "watch.hpp"

#include <list>
#include <map>
#include <optional>
#include <vector>

namespace rankc::runtime {

class coordinator::star {
 public:
  star(socket_handle listener, int world, std::uint64_t job, const limits&,
       std::function<void(const std::string&)> log, std::shared_ptr<board> ends);
  /// Until all have left; once `ending` is set, two seconds longer at most.
  void serve(const std::atomic<bool>& ending);
  /// From another thread: look at `ending` now.
  void wake();

 private:
  struct connection {
    socket_handle socket;
    std::string address;
    deadline last_heard;
    frame_reader reader{};
    std::string out{};           // what it has not taken yet
    std::optional<hello> who{};  // from its hello on
    bool left = false, closing = false, gone = false;
  };
  struct exchange {
    deadline started;
    std::map<int, std::string> from;
  };
  /// A failure that no other explains: of a rank that was stopped by another's. It counts where no cause is
  /// heard of soon.
  struct suspicion {
    int rank;
    std::string text;
    deadline until;
  };
  /// A failure that is told once others that come with it are known.
  struct found_cause {
    int rank, code;
    std::string text;
    bool is_loss;  // of its connection: the launcher may know more
  };
  enum class phase { joining, showing, running, over };

  void accept_all();
  void read(connection&);
  void write(connection&);
  void take(connection&, const frame&);
  void take_hello(connection&, const frame&);
  void turn_away(connection&);
  void look_at_clock();
  void judge();
  void give_verdict();
  void tell_verdict(connection&, int code, const std::string& text);
  void take_part(const connection&, const std::string& body);
  void take_begun(const connection&, std::int64_t step);
  std::string last_position(const connection&) const;
  void lose(connection&, const std::string& text);
  void add_cause(found_cause);
  void look_at_causes(deadline now);
  std::string name_of(int rank) const;
  void fail(int rank, int code, const std::string& text);
  void look_at_exchanges(deadline now);
  void leave(connection&);
  std::string data_address_of(const connection&) const;
  void send(connection&, frame_kind, std::string body = {});
  template <class Visit>
  void for_each_rank(const Visit& visit) {
    for (connection& c : connections_)
      if (c.who && !c.gone) visit(c);
  }

  const socket_handle listener_;
  const socket_handle woken_;
  const int world_;
  const std::uint64_t job_;
  const limits limits_;
  const std::function<void(const std::string&)> log_;
  phase phase_ = phase::joining;
  deadline started_, judged_by_, looked_at_, said_alive_;
  std::list<connection> connections_;
  std::map<int, std::string> listings_;  // by rank
  std::size_t asked_ = 0;                // for theirs
  std::map<std::string, exchange> exchanges_;
  std::optional<suspicion> suspicion_;
  std::vector<found_cause> causes_;
  deadline causes_since_{};
  const std::shared_ptr<board> ends_;
  std::map<int, std::string> names_;  // by rank
  watch watch_;
  std::string verdict_;                // why the start was refused
  std::map<int, std::int64_t> begun_;  // by rank, once a stop is proposed: the step that it is at
  int stop_signal_ = 0;
  int left_ = 0;  // ranks that have ended well
  bool has_turned_away_ = false, has_failed_ = false;
};

}  // namespace rankc::runtime
