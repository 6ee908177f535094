// SPDX-License-Identifier: Apache-2.0
// A rank's part in the control plane: its connection to the coordinator, and a thread that sends a sign of
// life every second and receives the failures of other ranks.
#pragma once
#include <rankc/launch/board.hpp>
#include <rankc/launch/frame.hpp>
#include <rankc/launch/hello.hpp>
#include <rankc/launch/join.hpp>
#include <rankc/launch/limits.hpp>
#include <rankc/launch/socket.hpp>
#include <rankc/runtime/failure.hpp>
#include <rankc/runtime/peers.hpp>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace rankc::runtime {

/// The first failure of a job.
struct root_cause {
  int rank, code;
  std::string text;
};

/// The verdict that ranks cannot start together; rank 0 reports it for all.
struct refused_start : failure {
  explicit refused_start(failure f) : failure(std::move(f)) {}
};

/// The failure (77) of a rank that stops because another has failed.
failure stopped_by(const root_cause&);

class member final : public peers {
 public:
  struct settings {
    std::string host{};  // the coordinator's host
    int port = 0;
    mac_key job{};
    limits times{};
    std::function<std::string()>
        listing{};                  // this rank's description; the coordinator asks for it if plans differ
    std::shared_ptr<board> ends{};  // the launcher's shared memory, if it has any
    /// Ends the process if it is still alive `times.end` after a failure that it did not report.
    std::function<void(const root_cause&)> too_late{};
    on_failed_try waits{};  // called while the coordinator cannot be reached
  };

  /// Join, and return once all ranks have joined and agree.
  /// Errors: refused_start with the verdict; failure (75) if the coordinator does not answer, or belongs to
  /// another job.
  member(const hello&, settings);
  ~member() override;
  member(const member&) = delete;

  /// Implements placement::exchange.
  std::vector<std::string> gather(const std::string& name, const std::string& mine);
  /// Implements placement::agreed_stop.
  /// Errors: failure (77) if another rank has failed, or if the ranks do not agree in time.
  int agreed_stop(std::int64_t step, int signal);

  std::unique_ptr<transport> connect() override;
  void tell_failure(int code, const std::string& text) override;
  void on_failure(std::function<void(const std::string&)>) override;
  progress_words& words() override {
    return settings_.ends != nullptr ? settings_.ends->words(self_.rank) : words_;
  }
  void on_look(std::function<rank_position()>) override;

  /// Report that this rank has failed, unless that is reported already. Returns: the first failure of the
  /// job, which may be another rank's.
  root_cause report(int code, const std::string& text);

  /// Report that this rank has ended well, and wait until all ranks have.
  /// Errors: failure (77) if another has failed.
  void leave();

  /// End the connection. Engines that still know this member find it failed.
  void close();

  const std::string& data_address() const { return data_address_; }

 private:
  struct start_verdict {
    int code = 0;
    std::string text;
    bool is_shared = false;  // all ranks receive the same verdict
  };
  void serve();
  void serve_or_learn();
  void take(const frame&);
  void learn(root_cause);
  void act_on_failure();
  void send(frame_kind, std::string_view body);
  bool receive();
  std::string how_coordinator_ended() const;
  void throw_if_failed() const;
  std::string sign_of_life();

  const hello self_;
  const settings settings_;
  const std::string coordinator_;  // its name in sentences
  coordinator_link link_;
  std::string data_address_;

  std::mutex sending_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<start_verdict> verdict_;
  std::map<std::string, std::vector<std::string>> gathered_;
  std::map<std::string, std::uint64_t> times_gathered_;
  std::optional<root_cause> cause_;
  std::int64_t begun_ = 0;  // the current step; 0: the first one, or no step
  bool has_asked_to_stop_ = false, stop_is_proposed_ = false;
  std::optional<std::pair<std::int64_t, int>> stop_;  // the last step, and the signal that asked for it
  std::mutex telling_;                                // guards on_failure_ and on_look_, also while they run
  std::function<void(const std::string&)> on_failure_;
  std::function<rank_position()> on_look_;
  progress_words words_;
  std::string exchange_;  // the exchange that this rank waits for
  std::optional<deadline> too_late_at_;
  std::atomic<bool> has_told_failure_ = false;
  bool is_over_ = false;  // all ranks have left
  std::atomic<bool> has_stopped_serving_ = false;
  std::atomic<bool> ending_ = false;
  std::thread thread_;
};

}  // namespace rankc::runtime
