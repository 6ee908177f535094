// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/stop_signal.hpp>

#include <csignal>
#include <initializer_list>

namespace rankc::runtime {
namespace {

volatile std::sig_atomic_t came = 0;  // a handler sees nothing but what is global

void take_down(int signal) {
  came = signal;
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

}  // namespace

stop_signal::stop_signal() {
  came = 0;
  struct sigaction action{};
  action.sa_handler = take_down;
  action.sa_flags = SA_RESTART;  // writes under way go on
  for (const int signal : {SIGINT, SIGTERM}) sigaction(signal, &action, nullptr);
}

stop_signal::~stop_signal() {
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);
}

int stop_signal::asked() const { return came; }

const char* stop_signal::name(int signal) { return signal == SIGINT ? "SIGINT" : "SIGTERM"; }

}  // namespace rankc::runtime
