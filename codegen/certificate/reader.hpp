// SPDX-License-Identifier: Apache-2.0
// Reads JSON by a schema, strictly: each field is present, of its type and in its range, and there is no
// other field.
#pragma once
#include <nlohmann/json.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "document.hpp"

namespace rankc::codegen::schema {

using nlohmann::json;

/// A value as sentences show it: a number, a short string, or only the kind of a longer value.
std::string found(const json&);

void read_value(const json&, const std::string& where, int&);
/// A place in an arena or a number of bytes.
void read_value(const json&, const std::string& where, std::size_t&);
/// A number of elements, rows or tokens: 0 or more.
void read_value(const json&, const std::string& where, std::int64_t&);
void read_value(const json&, const std::string& where, double&);
void read_value(const json&, const std::string& where, bool&);
void read_value(const json&, const std::string& where, std::string&);
/// The text stays valid until the process ends.
void read_value(const json&, const std::string& where, std::string_view&);
/// The index of a word in its list.
int read_word(const json&, const std::string& where, std::span<const char* const> words);

const json& expect_list(const json&, const std::string& where);
template <class T>
void read_value(const json& j, const std::string& where, std::vector<T>& list) {
  list.resize(expect_list(j, where).size());
  for (std::size_t i = 0; i < list.size(); ++i) read_value(j[i], where, list[i]);
}

void read_sizes(const json&, const std::string& where, std::vector<std::int64_t>&);
void read_sizes(const json&, const std::string& where, tensor_shape&);
void read_sizes(const json&, const std::string& where, std::vector<box_range>&);

/// A visitor that reads the fields of one struct.
class reader {
 public:
  reader(const json&, bool is_line, const std::string& where);

  template <class T>
  void operator()(const char* name, T& value, const char*) {
    const json& j = field(name);
    read_value(j, within(name), value);
  }
  template <class Word>
  void word(const char* name, Word& value, std::span<const char* const> words, const char*) {
    const int index = read_word(field(name), within(name), words);
    if constexpr (std::is_same_v<Word, std::string>) value = words[static_cast<std::size_t>(index)];
    else value = static_cast<Word>(index);
  }
  template <class List>
  void sizes(const char* name, List& list, const char*) {
    read_sizes(field(name), within(name), list);
  }
  template <class Schema, class T>
  void list(const char* name, std::vector<T>& list, const char*) {
    const std::string where = within(name);
    const json& j = expect_list(field(name), where);
    list.resize(j.size());
    for (std::size_t i = 0; i < list.size(); ++i)
      read_struct<Schema>(j[i], Schema::is_line ? where : Schema::what, list[i]);
  }
  template <class Schema, class T>
  void one(const char* name, T& value, const char*) {
    read_struct<Schema>(field(name), Schema::is_line ? within(name) : Schema::what, value);
  }
  void optional(const char* name, bool, const auto& list) {
    if (is_line_ ? j_.size() > seen_.size() : j_.contains(name)) list();
  }
  void nullable(const char* name, bool, const auto& list) {
    const auto at = j_.find(name);
    if (at == j_.end() || !at->is_null()) {
      expect(at == j_.end() || !at->empty(), "null where a list would be empty");
      return list();
    }
    seen_.push_back(name);
  }
  void when(bool condition, const char*, const auto& list) {
    if (condition) list();
  }
  void expect(bool condition, const char* text) const;
  void named(const char* kind, const std::string& name) { where_ = kind + (" \"" + name + "\""); }

  /// Reads all fields of the struct at `where`.
  template <class Schema, class T>
  static void read_struct(const json& j, const std::string& where, T& value) {
    reader f(j, Schema::is_line, where);
    Schema::list(f, value);
    f.finish();
  }

 private:
  const json& field(const char* name);
  std::string within(const char* name) const;
  void finish() const;

  const json& j_;
  bool is_line_;
  std::string where_;
  std::vector<const char*> seen_;
};

}  // namespace rankc::codegen::schema
