// SPDX-License-Identifier: Apache-2.0
// The control plane's middle, a thread of rank 0's process: all ranks, rank 0 too, are connected to it. It
// finds that all have come and agree, passes their exchanges on, notices who has gone or is silent, and tells
// all of the first failure.
#pragma once
#include <rankc/launch/board.hpp>
#include <rankc/launch/hello.hpp>
#include <rankc/launch/limits.hpp>
#include <rankc/launch/socket.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>

namespace rankc::runtime {

class coordinator {
 public:
  /// `log` receives what a user should see though it ends nothing: that a client was turned away. `ends`: the
  /// launcher's, if it has any.
  coordinator(socket_handle listener, int world, std::uint64_t job, const limits&,
              std::function<void(const std::string&)> log, std::shared_ptr<board> ends = nullptr);
  /// Waits until the others have gone, which they do at once after a failure; two seconds at most.
  ~coordinator();
  coordinator(const coordinator&) = delete;

  int port() const { return port_; }

 private:
  class star;
  int port_;
  std::atomic<bool> ending_ = false;
  std::unique_ptr<star> star_;
  std::thread thread_;
};

}  // namespace rankc::runtime
