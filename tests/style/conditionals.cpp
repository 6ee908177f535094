// SPDX-License-Identifier: Apache-2.0
#include "rules.hpp"

namespace rankc::style {
namespace {

// A condition begins after one of these.
bool is_before_condition(const code& source, std::size_t i) {
  return source.is_one_of(
      i, {",", ":", "return", "=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="});
}

// The expression being read between two brackets.
struct frame {
  bool block =
      false;  // The braces of a lambda or another block, which end the search for an outer conditional.
  int before_colon = 0;       // Conditionals whose `:` is still to come.
  bool after_colon = false;   // The last branch of a conditional is being read.
  bool in_condition = false;  // A bracket pair in a possible condition contains a conditional.

  bool in_branch() const { return before_colon > 0 || after_colon; }
};

class reader {
 public:
  explicit reader(const code& source) : source_(source) {}

  std::vector<finding> run() {
    for (std::size_t i = 0; i < source_.size(); ++i) step(i);
    return found_;
  }

 private:
  void step(std::size_t i) {
    if (source_.opens(i)) {
      frames_.push_back({.block = source_.is(i, "{") && source_.is_block(i)});
    } else if (source_.closes(i)) {
      close(source_.partner(i));
    } else if (source_.is(i, "?")) {
      if (is_nested()) found_.push_back({source_[i].line, "a conditional inside a conditional"});
      ++top().before_colon;
      top().in_condition = false;
    } else if (source_.is(i, ":") && top().before_colon > 0) {
      --top().before_colon;
      top().after_colon = true;
    } else if (source_.is(i, ";")) {
      top() = {.block = top().block};
    } else if (source_.is_comma(i) && top().before_colon == 0) {
      top().after_colon = false;
    }
    if (is_before_condition(source_, i)) top().in_condition = false;
  }

  void close(std::size_t open) {
    const bool header = source_.is_one_of(open - 1, {"if", "constexpr", "for", "while", "switch"});
    const bool had_conditional = !top().block && !header && (top().in_branch() || top().in_condition);
    frames_.pop_back();
    if (had_conditional) top().in_condition = true;
  }

  bool is_nested() const {
    if (frames_.back().in_condition) return true;
    for (std::size_t i = frames_.size(); i-- > 0;) {
      if (frames_[i].in_branch()) return true;
      if (frames_[i].block) return false;
    }
    return false;
  }

  frame& top() { return frames_.back(); }

  const code& source_;
  std::vector<frame> frames_{frame{}};
  std::vector<finding> found_;
};

}  // namespace

std::vector<finding> nested_conditionals(const code& source) { return reader(source).run(); }

}  // namespace rankc::style
