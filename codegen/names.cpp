// SPDX-License-Identifier: Apache-2.0
#include <rankc/codegen/names.hpp>

#include <algorithm>
#include <array>
#include <cctype>

namespace rankc::codegen {

namespace {

constexpr std::array keywords{
    "alignas",     "alignof",  "and",        "and_eq",    "asm",       "auto",         "bitand",
    "bitor",       "bool",     "break",      "case",      "catch",     "char",         "char16_t",
    "char32_t",    "char8_t",  "class",      "co_await",  "co_return", "co_yield",     "compl",
    "concept",     "const",    "const_cast", "consteval", "constexpr", "constinit",    "continue",
    "decltype",    "default",  "delete",     "do",        "double",    "dynamic_cast", "else",
    "enum",        "explicit", "export",     "extern",    "false",     "float",        "for",
    "friend",      "goto",     "if",         "inline",    "int",       "long",         "mutable",
    "namespace",   "new",      "noexcept",   "not",       "not_eq",    "nullptr",      "operator",
    "or",          "or_eq",    "private",    "protected", "public",    "register",     "reinterpret_cast",
    "requires",    "return",   "short",      "signed",    "sizeof",    "static",       "static_assert",
    "static_cast", "struct",   "switch",     "template",  "this",      "thread_local", "throw",
    "true",        "try",      "typedef",    "typeid",    "typename",  "union",        "unsigned",
    "using",       "virtual",  "void",       "volatile",  "wchar_t",   "while",        "xor",
    "xor_eq"};

/// Macros of the compilers and of the C library that are in lower case; the others have no lower case letter.
constexpr std::array macros{"linux", "unix",   "major", "minor",  "makedev",
                            "errno", "assert", "stdin", "stdout", "stderr"};

bool may_be_macro(std::string_view s) {
  if (std::find(macros.begin(), macros.end(), s) != macros.end()) return true;
  return s.size() > 1 && std::none_of(s.begin(), s.end(), [](unsigned char c) { return std::islower(c); });
}

}  // namespace

std::string token(const action& a) {
  sentence s;
  s << a;
  return std::string(s.view());
}

std::string identifier(std::string_view s) {
  std::string out(s);
  for (char& c : out)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0]))) out.insert(0, "_");
  if (std::find(keywords.begin(), keywords.end(), out) != keywords.end() || may_be_macro(out)) out += '_';
  return out;
}

name_scope::name_scope(const std::vector<std::string_view>& reserved)
    : taken_(reserved.begin(), reserved.end()) {}

std::string name_scope::take(std::string_view wanted, std::initializer_list<std::string_view> forms) {
  const std::string base = identifier(wanted);
  std::string name = base;
  const auto in_form = [&](std::string_view form) {
    const std::size_t star = form.find('*');
    return std::string(form.substr(0, star)) + name + std::string(form.substr(star + 1));
  };
  const auto is_taken = [&] {
    return taken_.contains(name) ||
           std::any_of(forms.begin(), forms.end(), [&](auto f) { return taken_.contains(in_form(f)); });
  };
  for (int i = 2; is_taken(); ++i) name = identifier(base + "_" + std::to_string(i));
  for (std::string_view f : forms) taken_.insert(in_form(f));
  return *taken_.insert(name).first;
}

}  // namespace rankc::codegen
