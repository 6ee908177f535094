// SPDX-License-Identifier: Apache-2.0
// The thread of one GPU. It takes a job, runs it with its rank's driver, and reports to the engine.
#pragma once
#include "driver.hpp"

#include <thread>

namespace rankc::runtime::cuda {

class worker {
 public:
  worker(context&, const program&, const batch&, report&);
  ~worker();
  worker(const worker&) = delete;
  worker& operator=(const worker&) = delete;

  void start(const job&);

  driver& of() { return driver_; }
  const driver& of() const { return driver_; }

 private:
  void serve();

  context& context_;
  report& report_;
  driver driver_;

  std::mutex mutex_;  // protects the mailbox: job_, has_job_, stop_
  std::condition_variable posted_;
  job job_{};
  bool has_job_ = false, stop_ = false;
  std::thread thread_;
};

}  // namespace rankc::runtime::cuda
