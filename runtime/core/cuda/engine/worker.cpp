// SPDX-License-Identifier: Apache-2.0
#include "worker.hpp"

#include "../device/check.hpp"

namespace rankc::runtime::cuda {

worker::worker(context& owner, const program& p, const batch& b, report& to)
    : context_(owner), report_(to), driver_(owner, p, b, to) {
  thread_ = std::thread([this] { serve(); });
}

worker::~worker() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  posted_.notify_one();
  thread_.join();
}

void worker::start(const job& what) {
  {
    const std::lock_guard lock(mutex_);
    job_ = what;
    has_job_ = true;
    driver_.set_enqueueing(true);
  }
  posted_.notify_one();
}

void worker::serve() {
  for (;;) {
    job mine;
    {
      std::unique_lock lock(mutex_);
      posted_.wait(lock, [this] { return has_job_ || stop_; });
      if (stop_) return;
      mine = job_;
      has_job_ = false;
    }
    std::exception_ptr error;
    try {
      check(context_.of(), cudaSetDevice(context_.device()), "cudaSetDevice");
      driver_.run(mine);
    } catch (...) {
      error = std::current_exception();
    }
    driver_.set_enqueueing(false);
    const std::lock_guard lock(report_.mutex);
    if (error != nullptr && report_.first == nullptr) report_.first = error;
    --report_.pending;
    report_.changed.notify_all();
  }
}

}  // namespace rankc::runtime::cuda
