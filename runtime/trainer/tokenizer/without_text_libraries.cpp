// SPDX-License-Identifier: Apache-2.0
// Replacements for parts of a tokenizer in a build without PCRE2 or utf8proc.
#include <rankc/runtime/failure.hpp>

#include "normal_form.hpp"
#include "pattern.hpp"

namespace rankc::runtime {
namespace {

[[noreturn]] void refuse() {
  throw failure(1,
                "RC6704: this build has no PCRE2 or no utf8proc, which a tokenizer.json needs; install "
                "libpcre2-dev and libutf8proc-dev and build again");
}

}  // namespace

struct pattern::compiled {};
pattern::pattern(const std::string&) { refuse(); }
pattern::~pattern() = default;
pattern::pattern(pattern&&) noexcept = default;
pattern& pattern::operator=(pattern&&) noexcept = default;
bool pattern::find(std::string_view, std::size_t, match&) const { refuse(); }

std::string normal_form_c(std::string_view) { refuse(); }

}  // namespace rankc::runtime
