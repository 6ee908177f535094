// SPDX-License-Identifier: Apache-2.0
// Captures the output of a command that a test calls as a function.
#pragma once
#include <unistd.h>

#include <cstdio>
#include <string>

namespace testing {

/// Captures what is written to a C stream while the object lives.
class capture {
 public:
  explicit capture(std::FILE* stream) : stream_(stream), to_(std::tmpfile()) {
    std::fflush(stream_);
    saved_ = dup(fileno(stream_));
    dup2(fileno(to_), fileno(stream_));
  }
  ~capture() { std::fclose(to_); }
  std::string end() {
    std::fflush(stream_);
    dup2(saved_, fileno(stream_));
    close(saved_);
    std::string text(static_cast<std::size_t>(std::ftell(to_)), '\0');
    std::rewind(to_);
    text.resize(std::fread(text.data(), 1, text.size(), to_));
    return text;
  }

 private:
  std::FILE *stream_, *to_;
  int saved_;
};

}  // namespace testing
