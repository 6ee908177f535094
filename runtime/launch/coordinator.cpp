// SPDX-License-Identifier: Apache-2.0
#include <rankc/launch/coordinator.hpp>

#include "star.hpp"

namespace rankc::runtime {

coordinator::coordinator(socket_handle listener, int world, std::uint64_t job, const limits& l,
                         std::function<void(const std::string&)> log, std::shared_ptr<board> ends)
    : port_(port_of(listener)),
      star_(std::make_unique<star>(std::move(listener), world, job, l, std::move(log), std::move(ends))),
      thread_([this] { star_->serve(ending_); }) {}

coordinator::~coordinator() {
  ending_ = true;
  star_->wake();
  thread_.join();
}

}  // namespace rankc::runtime
