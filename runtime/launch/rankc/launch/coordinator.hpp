// SPDX-License-Identifier: Apache-2.0
// The center of the control plane: a thread in rank 0's process, to which all ranks connect, rank 0 too. It
// decides whether the ranks can start together, forwards their exchanges, detects ranks that end or are
// silent, and tells all ranks of the first failure.
#pragma once
#include <rankc/launch/board.hpp>
#include <rankc/launch/hello.hpp>
#include <rankc/launch/keys.hpp>
#include <rankc/launch/limits.hpp>
#include <rankc/launch/socket.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace rankc::runtime {

class coordinator {
 public:
  /// `log` receives notes for the user. `ends`: the launcher's shared memory, if it has any.
  coordinator(std::vector<socket_handle> listeners, int world, const mac_key& job, const limits&,
              std::function<void(const std::string&)> log, std::shared_ptr<board> ends = nullptr);
  /// Waits until the other ranks have left, for two seconds at most. After a failure they leave at once.
  ~coordinator();
  coordinator(const coordinator&) = delete;

  int port() const { return port_; }
  /// An address at which it listens.
  const std::string& address() const { return address_; }

 private:
  class server;
  void serve(const std::function<void(const std::string&)>& log);

  int port_;
  std::string address_;
  std::atomic<bool> ending_ = false;
  std::unique_ptr<server> server_;
  std::thread thread_;
};

}  // namespace rankc::runtime
