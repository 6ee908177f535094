// SPDX-License-Identifier: Apache-2.0
#include "pattern.hpp"

#include <rankc/runtime/failure.hpp>

#include <fmt/format.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <cstdint>
#include <new>
#include <stdexcept>
#include <utility>

namespace rankc::runtime {
namespace {

constexpr std::size_t longest_expression = 1 << 16, stack_begin = 1 << 15, stack_most = 1 << 24;

std::string text_of_error(int code) {
  unsigned char text[256];
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

}  // namespace

struct pattern::compiled {
  template <auto free>
  struct freed {
    template <class T>
    void operator()(T* what) const {
      free(what);
    }
  };
  template <class T, auto free>
  using owned = std::unique_ptr<T, freed<free>>;

  std::string expression;
  owned<pcre2_code, pcre2_code_free> code;
  owned<pcre2_match_data, pcre2_match_data_free> data;
  owned<pcre2_match_context, pcre2_match_context_free> context;
  owned<pcre2_jit_stack, pcre2_jit_stack_free> stack;

  explicit compiled(const std::string& from) : expression(from) {
    if (from.size() > longest_expression)
      throw std::invalid_argument(fmt::format("it has more than {} bytes", longest_expression));
    const owned<pcre2_compile_context, pcre2_compile_context_free> rules(
        pcre2_compile_context_create(nullptr));
    if (!rules) throw std::bad_alloc();
    pcre2_set_newline(rules.get(), PCRE2_NEWLINE_LF);
    int error = 0;
    std::size_t at = 0;
    code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(from.data()), from.size(),
                             PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &at, rules.get()));
    if (!code) throw std::invalid_argument(text_of_error(error));
    std::uint32_t matches_empty = 0;
    pcre2_pattern_info(code.get(), PCRE2_INFO_MATCHEMPTY, &matches_empty);
    if (matches_empty != 0) throw std::invalid_argument("it can match an empty text");
    data.reset(pcre2_match_data_create(1, nullptr));
    context.reset(pcre2_match_context_create(nullptr));
    if (!data || !context) throw std::bad_alloc();
    // If machine code is not available, pcre2_match interprets the expression.
    if (pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE) != 0) return;
    stack.reset(pcre2_jit_stack_create(stack_begin, stack_most, nullptr));
    if (!stack) throw std::bad_alloc();
    pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
  }
};

pattern::pattern(const std::string& expression) : of_(std::make_unique<compiled>(expression)) {}
pattern::~pattern() = default;
pattern::pattern(pattern&&) noexcept = default;
pattern& pattern::operator=(pattern&&) noexcept = default;

bool pattern::find(std::string_view text, std::size_t from, match& found) const {
  const int code = pcre2_match(of_->code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                               PCRE2_NO_UTF_CHECK, of_->data.get(), of_->context.get());
  if (code == PCRE2_ERROR_NOMATCH) return false;
  if (code < 0)
    throw failure(1, "RC6701: the pattern {} cannot be searched for in a text of {} bytes: {}",
                  of_->expression, text.size(), text_of_error(code));
  const std::size_t* place = pcre2_get_ovector_pointer(of_->data.get());
  found = {place[0], place[1]};
  return true;
}

}  // namespace rankc::runtime
