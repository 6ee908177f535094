// SPDX-License-Identifier: Apache-2.0
// The kernels that a program calls, as structs of named operands: printed from the rows of the table of ops. Sizes come
// from the operands' types; what no type says is a member.
#include <fmt/format.h>

#include <algorithm>
#include <rankc/ops/memory.hpp>
#include <rankc/templates.hpp>
#include <rankc/version.hpp>

#include "emit.hpp"

namespace rankc::codegen {

namespace {

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    words.push_back(text.substr(0, text.find(at)));
    text.remove_prefix(std::min(text.size(), words.back().size() + 1));
  }
  return words;
}

class kernel_struct {
 public:
  kernel_struct(const op_row& row, std::string name, target t) : row_(row), name_(std::move(name)), kernel_(kernel_of(row, t)), target_(t) {
    for (const port& p : row.used_ports()) {
      has_real_ |= p.holds == element::real && p.as != use::scratch;
      adds_ |= p.as == use::sum || p.adds;
      for (int d = 0; d < p.shape.ndim; ++d) add_dim(p.shape.dim[d]);
      if (!p.shape.stride.empty()) add(deduced_, std::string(p.shape.stride));
    }
    for (std::string_view product : split(kernel_.sizes, ' '))
      for (std::string_view symbol : split(product, '*')) need(symbol);
    for (const auto& [whole, of] : products_)
      for (std::string_view symbol : split(of, '*')) need(symbol);
  }

  std::string text() const {
    std::vector<std::string> parameters;
    if (has_real_) parameters.push_back("class T");
    for (const auto* list : {&deduced_, &given_})
      for (const std::string& symbol : *list) parameters.push_back("std::size_t " + symbol);
    std::string out = parameters.empty() ? "" : call("template <", parameters, 0, "");
    if (const auto paren = out.find("<("); paren != out.npos) out.erase(paren + 1, 1), out.back() = '>';
    out += (out.empty() ? "" : "\n") + fmt::format("struct {} {{\n", name_) + members();
    for (const auto& [whole, of] : products_) out += fmt::format("  static_assert({} == {});\n", whole, spaced(of));
    return out + "  void operator()(rank& r) const {\n    " + body() + "\n  }\n};\n";
  }

 private:
  static void add(std::vector<std::string>& list, const std::string& name) {
    if (std::find(list.begin(), list.end(), name) == list.end()) list.push_back(name);
  }
  static std::string spaced(std::string_view product) { return fmt::format("{}", fmt::join(split(product, '*'), " * ")); }
  /// "heads_dim": whole units of so many elements are one number in a type.
  static std::string name_of(const port_dim& d) {
    return d.number ? std::to_string(d.number) : std::string(d.count) + (d.unit.empty() ? "" : "_" + std::string(d.unit));
  }
  void add_dim(const port_dim& d) {
    if (d.number) return;
    add(deduced_, name_of(d));
    if (d.unit.empty()) return;
    const std::pair product{name_of(d), std::string(d.count) + "*" + std::string(d.unit)};
    if (std::find(products_.begin(), products_.end(), product) == products_.end()) products_.push_back(product);
  }
  /// A size that the kernel takes: of a type, or a member of its own.
  void need(std::string_view symbol) {
    const std::string s(symbol);
    if (s == "number" || is_first(s) || std::find(deduced_.begin(), deduced_.end(), s) != deduced_.end()) return;
    add(given_, s);
  }
  bool is_first(std::string_view symbol) const {
    for (const port& p : row_.used_ports())
      for (int d = 0; d < p.shape.ndim; ++d)
        if (p.shape.dim[d].first == symbol) return true;
    return false;
  }

  std::string type_of(const port& p) const {
    if (p.as == use::scratch) return "scratch";
    const std::string element = p.holds == element::index ? "std::int32_t" : p.holds == element::wide ? "wide" : "T";
    if (p.shape.ndim == 0) return "vector<" + element + ", 1>";
    const std::string first = name_of(p.shape.dim[0]);
    if (p.shape.ndim == 1) return "vector<" + element + ", " + first + ">";
    return "matrix<" + element + ", " + first + ", " + name_of(p.shape.dim[1]) +
           (p.shape.stride.empty() ? "" : ", " + std::string(p.shape.stride)) + ">";
  }

  std::string members() const {
    std::string out, type, names;
    const auto flush = [&] {
      if (!type.empty()) out += "  " + type + " " + names + ";\n";
    };
    for (const port& p : row_.used_ports()) {
      if (type_of(p) != type) {
        flush();
        type = type_of(p), names = p.name;
      } else {
        names += ", " + std::string(p.name);
      }
    }
    flush();
    for (const std::string& symbol : given_) out += fmt::format("  size_constant<{}> {}_size;\n", symbol, symbol);
    for (std::string_view symbol : split(kernel_.sizes, ' '))
      if (is_first(symbol)) out += fmt::format("  std::size_t {};\n", symbol);
      else if (symbol == "number") out += "  double number;\n";
    return out + (adds_ ? "  store into;\n" : "");
  }

  std::string body() const {
    std::vector<std::string> arguments{"r"};
    for (const bool written : {true, false})
      for (const port& p : row_.used_ports())
        if (p.is_read() != written) arguments.push_back(std::string(p.name) + ".where");
    for (std::string_view product : split(kernel_.sizes, ' ')) arguments.push_back(spaced(product));
    if (adds_) arguments.push_back("into == store::add");
    const std::string scope = kernel_.name.find("::") == kernel_.name.npos ? target_ == target::cuda ? "rankc::cuda::" : "rankc::host::" : "";
    return call(scope + std::string(kernel_.name) + "<" + (has_real_ ? "T" : "real") + ">", arguments, 4);
  }

  const op_row& row_;
  const std::string name_;
  const kernel_row& kernel_;
  const target target_;
  std::vector<std::string> deduced_, given_;                      // sizes, by what says them
  std::vector<std::pair<std::string, std::string>> products_;    // "heads_dim", "heads*dim"
  bool has_real_ = false, adds_ = false;
};

}  // namespace

}  // namespace rankc::codegen
