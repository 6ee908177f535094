// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/console.hpp>

#include <rankc/runtime/failure.hpp>
#include <rankc/launch/say_error.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace rankc::runtime {

std::string duration_text(double seconds) {
  const auto whole = static_cast<long long>(std::llround(std::max(0.0, seconds)));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

std::string progress_text(std::int64_t step, std::int64_t last_step, double loss, double seconds_left) {
  return fmt::format("step {}/{}  {} %  loss {:.6f}  ETA {}", step, last_step, 100 * step / last_step, loss,
                     duration_text(seconds_left));
}

console::console(bool speaks, bool is_terminal) : speaks_(speaks), is_terminal_(is_terminal) {}

console::~console() { clear(); }

void console::clear() {
  if (has_progress_) std::fputs("\r\033[K", stdout);
  has_progress_ = false;
}

void console::print(const std::string& text) {
  clear();
  if (std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0) return;
  failed_ = true;
  say_error("{}\n", say("RC6040: standard output cannot be written: {}; the run continues without it",
                        std::strerror(errno)));
  std::clearerr(stdout);
}

void console::line(const std::string& text) {
  if (speaks_ && !failed_) print(printable(text) + "\n");
}

void console::progress(const std::string& text) {
  const auto now = std::chrono::steady_clock::now();
  if (!speaks_ || failed_ || !is_terminal_ || now - shown_ < std::chrono::milliseconds(100)) return;
  print(text);
  has_progress_ = !failed_;
  shown_ = now;
}

void fail_to_print() {
  throw failure(1, "RC6041: standard output cannot be written: {}", std::strerror(errno));
}

void print_result(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return;
  fail_to_print();
}

}  // namespace rankc::runtime
