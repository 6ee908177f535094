// SPDX-License-Identifier: Apache-2.0
#include "normal_form.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <new>
#include <vector>

#include "utf8.hpp"

namespace rankc::runtime {
namespace {

/// True if all code points are below U+0300: NFC leaves such a text unchanged.
bool is_below_marks(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0xcc; });
}

int combining_class(char32_t code) {
  return utf8proc_get_property(static_cast<utf8proc_int32_t>(code))->combining_class;
}

/// The marks that Unicode has had since version 10, and U+11930, which is composed since version 13. The
/// `tokenizers` package, which trains tokenizers, has the tables of version 9 and leaves these unchanged.
constexpr struct {
  char32_t first, last;
} newer_marks[]{
    {0x7fd, 0x7fd},     {0x898, 0x89f},     {0x8ca, 0x8d3},     {0x9fe, 0x9fe},     {0xc3c, 0xc3c},
    {0xd3b, 0xd3c},     {0xeba, 0xeba},     {0x1715, 0x1715},   {0x1abf, 0x1ace},   {0x1df6, 0x1dfa},
    {0xa82c, 0xa82c},   {0x10d24, 0x10d27}, {0x10eab, 0x10eac}, {0x10efd, 0x10eff}, {0x10f46, 0x10f50},
    {0x10f82, 0x10f85}, {0x11070, 0x11070}, {0x1133b, 0x1133b}, {0x1145e, 0x1145e}, {0x11839, 0x1183a},
    {0x11930, 0x11930}, {0x1193d, 0x1193e}, {0x11943, 0x11943}, {0x119e0, 0x119e0}, {0x11a34, 0x11a34},
    {0x11a47, 0x11a47}, {0x11a99, 0x11a99}, {0x11d42, 0x11d42}, {0x11d44, 0x11d45}, {0x11d97, 0x11d97},
    {0x11f41, 0x11f42}, {0x16ff0, 0x16ff1}, {0x1e08f, 0x1e08f}, {0x1e130, 0x1e136}, {0x1e2ae, 0x1e2ae},
    {0x1e2ec, 0x1e2ef}, {0x1e4ec, 0x1e4ef}};

bool is_newer_mark(char32_t code) {
  const auto* const range = std::lower_bound(std::begin(newer_marks), std::end(newer_marks), code,
                                             [](const auto& r, char32_t c) { return r.last < c; });
  return range != std::end(newer_marks) && range->first <= code;
}

/// Appends the NFC of a text whose marks are in canonical order.
void append_composed(std::string& to, const std::string& text) {
  if (text.empty()) return;
  utf8proc_uint8_t* mapped = nullptr;
  const utf8proc_ssize_t length = utf8proc_map(
      reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
      &mapped, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owned(mapped, std::free);
  if (length < 0) throw std::bad_alloc();  // the text is valid, so memory is the only cause
  to.append(reinterpret_cast<const char*>(mapped), static_cast<std::size_t>(length));
}

/// Appends the NFC of a line. A line end neither decomposes nor composes with the text before it. utf8proc
/// sorts the marks of a base in quadratic time, which is slow for many marks, so they are sorted here.
void append_line(std::string& to, std::string_view line) {
  if (is_below_marks(line)) {
    to += line;
    return;
  }
  std::string sorted;
  std::vector<char32_t> marks;
  const auto put_marks = [&] {
    std::stable_sort(marks.begin(), marks.end(),
                     [](char32_t a, char32_t b) { return combining_class(a) < combining_class(b); });
    for (const char32_t mark : marks) append_utf8(sorted, mark);
    marks.clear();
  };
  while (!line.empty()) {
    const std::string_view letter = line.substr(0, first_sequence(line).bytes);
    const char32_t code = first_code_point(letter);
    line.remove_prefix(letter.size());
    if (is_newer_mark(code)) {
      put_marks();
      append_composed(to, sorted);
      sorted.clear();
      to += letter;
    } else if (combining_class(code) != 0) {
      marks.push_back(code);
    } else {
      put_marks();
      sorted += letter;
    }
  }
  put_marks();
  append_composed(to, sorted);
}

}  // namespace

std::string normal_form_c(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    append_line(out, text.substr(0, end));
    text.remove_prefix(end);
  }
  return out;
}

}  // namespace rankc::runtime
