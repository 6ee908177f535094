// SPDX-License-Identifier: Apache-2.0
// Writes JSON by a schema. Equal structs give equal bytes.
#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "document.hpp"

namespace rankc::codegen::schema {

/// A struct that is already JSON.
struct written {
  std::string text;
};

void append_quoted(std::string& out, std::string_view);

/// A visitor that writes the fields of one struct.
class writer {
 public:
  /// `spread`: each field on a separate line.
  writer(std::string& out, bool is_line, bool spread = false)
      : out_(out), is_line_(is_line), spread_(spread) {
    out_ += is_line_ ? '[' : '{';
  }

  template <class T>
  void operator()(const char* name, const T& value, const char*) {
    begin(name);
    write(value);
  }
  template <class Word>
  void word(const char* name, const Word& value, std::span<const char* const> words, const char*) {
    begin(name);
    if constexpr (std::is_same_v<Word, std::string>) write(value);
    else write(std::string_view(words[static_cast<std::size_t>(value)]));
  }
  template <class List>
  void sizes(const char* name, const List& list, const char*) {
    begin(name);
    out_ += '[';
    const char* comma = "";
    for (const auto& size : list) {
      out_ += comma;
      comma = ",";
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(size)>, box_range>) write(size.count);
      else write(size);
    }
    out_ += ']';
  }
  template <class Schema, class List>
  void list(const char* name, const List& list, const char*) {
    begin(name);
    out_ += '[';
    bool is_first = true;
    for (const auto& x : list) {
      if (!is_first) out_ += ',';
      if (Schema::own_line) out_ += '\n';
      is_first = false;
      write_struct<Schema>(out_, x);
    }
    if (Schema::own_line && !is_first) out_ += '\n';
    out_ += ']';
  }
  template <class Schema, class T>
  void one(const char* name, const T& value, const char*) {
    begin(name);
    write_struct<Schema>(out_, value);
  }
  void optional(const char*, bool is_there, const auto& list) {
    if (is_there) list();
  }
  void nullable(const char* name, bool is_there, const auto& list) {
    if (is_there) return list();
    begin(name);
    out_ += "null";
  }
  void when(bool condition, const char*, const auto& list) {
    if (condition) list();
  }
  void expect(bool, const char*) const {}
  void named(const char*, const std::string&) const {}
  void finish() {
    if (spread_) out_ += '\n';
    out_ += is_line_ ? ']' : '}';
  }

  template <class Schema, class T>
  static void write_struct(std::string& out, const T& value) {
    writer f(out, Schema::is_line);
    Schema::list(f, value);
    f.finish();
  }
  template <class Schema>
  static void write_struct(std::string& out, const written& value) {
    out += value.text;
  }

 private:
  void begin(const char* name) {
    if (!is_first_) out_ += ',';
    if (spread_) out_ += '\n';
    is_first_ = false;
    if (is_line_) return;
    out_ += '"';
    out_ += name;
    out_ += spread_ ? "\": " : "\":";
  }
  void write(bool flag) { out_ += flag ? "true" : "false"; }
  void write(double x) { fmt::format_to(std::back_inserter(out_), "{}", x); }
  template <std::integral N>
  void write(N n) {
    const fmt::format_int digits(n);
    out_.append(digits.data(), digits.size());
  }
  void write(std::string_view text) { append_quoted(out_, text); }
  void write(const std::string& text) { append_quoted(out_, text); }
  template <class T>
  void write(const std::vector<T>& list) {
    out_ += '[';
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (i > 0) out_ += ',';
      write(list[i]);
    }
    out_ += ']';
  }

  std::string& out_;
  bool is_line_, spread_, is_first_ = true;
};

}  // namespace rankc::codegen::schema
