// SPDX-License-Identifier: Apache-2.0
// Emits the kernels that a program calls, as structs of named operands, from the rows of the table of ops.
// The operands' types give the sizes; a size that no type has is a member.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <rankc/ops/cross_entropy.hpp>
#include <rankc/ops/memory.hpp>
#include <rankc/templates.hpp>
#include <rankc/version.hpp>

#include "../passes/call_sizes.hpp"
#include "emit.hpp"

namespace rankc::codegen {

namespace {

class kernel_struct {
 public:
  kernel_struct(const op_row& row, target t, bool has_setting)
      : row_(row), kernel_(kernel_of(row, t)), target_(t), members_(members_of(row, t, has_setting)) {
    for (const port& p : row.used_ports()) {
      has_real_ |= p.holds == element::real && p.as != use::scratch;
      for (int d = 0; d < p.shape.ndim; ++d)
        if (!p.shape.dim[d].number) add_once(deduced_, dim_symbol(p.shape.dim[d]));
      if (!p.shape.stride.empty()) add_once(deduced_, std::string(p.shape.stride));
    }
  }

  std::string text(const std::string& name) {
    std::vector<std::string> parameters;
    if (has_real_) parameters.push_back("class T");
    for (const std::string& symbol : deduced_) parameters.push_back("std::size_t " + letter(symbol));
    for (const auto& [symbol, name_of] : members_.given)
      parameters.push_back("std::size_t " + letter(symbol));
    std::string out = parameters.empty() ? "" : "template <" + wrap(parameters, ",", "          ") + ">\n";
    const std::string row =
        name == row_.name ? ""
                          : fmt::format("  static constexpr const char* row_name = \"{}\";\n", row_.name);
    return out + fmt::format("struct {} {{\n", name) + row + members() + products() +
           "  void operator()(const lane& on) const {\n    " + body() + "\n  }\n};\n";
  }

 private:
  /// "Heads": the template parameter for a symbol.
  std::string letter(const std::string& symbol) {
    std::string& known = letters_[symbol];
    if (known.empty()) {
      std::string wanted = symbol;
      wanted[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(wanted[0])));
      known = scope_.take(wanted);
    }
    return known;
  }
  std::string product(std::string_view symbols) {
    std::vector<std::string> factors;
    for (std::string_view s : split(symbols, '*')) {
      const auto at = std::find_if(members_.run_time.begin(), members_.run_time.end(),
                                   [&](const auto& m) { return m.first == s; });
      factors.push_back(at != members_.run_time.end() ? at->second : letter(std::string(s)));
    }
    return fmt::format("{}", fmt::join(factors, " * "));
  }
  std::string dim_text(const port_dim& d) {
    return d.number ? std::to_string(d.number) : letter(dim_symbol(d));
  }

  static std::string element_name(const port& p) {
    if (is_fp8(p.holds)) return std::string(fp8_name(p.holds));
    constexpr const char* names[]{"T", "wide", "std::int32_t"};
    return names[static_cast<int>(p.as == use::sum ? element::wide : p.holds)];
  }
  std::string type_of(const port& p) {
    if (p.as == use::scratch) return "workspace";
    const std::string element = element_name(p);
    if (p.shape.ndim == 0) return "vector<" + element + ", 1>";
    if (p.shape.ndim == 1) return "vector<" + element + ", " + dim_text(p.shape.dim[0]) + ">";
    return "matrix<" + element + ", " + dim_text(p.shape.dim[0]) + ", " + dim_text(p.shape.dim[1]) +
           (p.shape.stride.empty() ? "" : ", " + letter(std::string(p.shape.stride))) + ">";
  }

  /// The members of a struct. Neighbours of one type share a line.
  std::string members() {
    std::vector<std::pair<std::string, std::string>> lines;
    for (std::size_t p = 0; p < members_.operands.size(); ++p) {
      const std::string type = type_of(row_.ports[p]);
      if (lines.empty() || lines.back().first != type) lines.emplace_back(type, members_.operands[p]);
      else lines.back().second += ", " + members_.operands[p];
    }
    for (const auto& [symbol, name] : members_.given)
      lines.emplace_back("size_constant<" + letter(symbol) + ">", name);
    for (const auto& [symbol, name] : members_.run_time)
      lines.emplace_back(symbol == "number" ? "double" : "std::size_t", name);
    if (!members_.setting.empty()) lines.emplace_back("rankc::attention_setting", members_.setting + " = {}");
    if (!members_.into.empty())
      lines.emplace_back("store", members_.into + (members_.may_add ? " = store::overwrite" : ""));
    std::string out;
    for (const auto& [type, names] : lines) out += fmt::format("  {} {};\n", type, names);
    return out;
  }

  /// Emits a static_assert for each dim in units: it is the number of units times their size. An operand's
  /// type has only the product.
  std::string products() {
    std::vector<std::string> lines;
    for (const port& p : row_.used_ports())
      for (int d = 0; d < p.shape.ndim; ++d)
        if (const port_dim& dim = p.shape.dim[d]; !dim.unit.empty())
          add_once(lines, fmt::format("  static_assert({} == {} * {});\n", dim_text(dim),
                                      letter(std::string(dim.count)), letter(std::string(dim.unit))));
    return fmt::format("{}", fmt::join(lines, ""));
  }

  std::string body() {
    std::vector<std::string> arguments{"on"};
    for (const bool read : {false, true})
      for (std::size_t p = 0; p < members_.operands.size(); ++p)
        if (row_.ports[p].is_read() == read) arguments.push_back(members_.operands[p] + ".where");
    for (std::string_view size : split(kernel_.sizes, ' ')) arguments.push_back(product(size));
    if (!members_.setting.empty()) arguments.push_back(members_.setting);
    if (!members_.into.empty()) arguments.push_back(members_.into + " == store::add");
    return call(scope() + std::string(kernel_.name) + "<" + (has_real_ ? "T" : "real") + ">", arguments, 4);
  }

  /// The namespace of the runtime for the target; empty for a kernel whose name has a namespace.
  std::string scope() const {
    if (kernel_.name.find("::") != kernel_.name.npos) return "";
    return target_ == target::cuda ? "rankc::cuda::" : "rankc::host::";
  }

  const op_row& row_;
  const kernel_row kernel_;
  const target target_;
  const kernel_members members_;
  std::vector<std::string> deduced_;  // sizes that types give
  std::map<std::string, std::string> letters_;
  name_scope scope_{{"T"}};
  bool has_real_ = false;
};

/// The rows that are not conversions: those of the step, then those of layers in the order of their first
/// use.
std::vector<const op_row*> rows_of(const lowered& l) {
  std::vector<const op_row*> rows;
  if (const training& by = l.plan->recipe; by.counts_labels()) {
    rows.push_back(&ops::count_row(by));
    if (l.trains()) rows.push_back(&ops::skip_unlabeled);
  }
  for (const body& b : l.bodies)
    for (const auto* list : {&b.forward, &b.backward})
      for (const node& n : *list)
        if (!n.row->communicates() && !n.is(ops::clear) &&
            std::find(rows.begin(), rows.end(), n.row) == rows.end())
          rows.push_back(n.row);
  return rows;
}

/// The headers that declare the kernels of a user's ops and optimizer.
std::string headers(const lowered& l) {
  std::vector<std::string_view> all;
  const auto add = [&](std::string_view header) {
    if (!header.empty() && std::find(all.begin(), all.end(), header) == all.end()) all.push_back(header);
  };
  for (const op_row* row : rows_of(l)) add(row->header);
  if (l.trains()) add(l.optimizer().header);
  if (all.empty()) return "";
  std::string out = fmt::format("#define RANKC_{}_KERNELS  // what a header of ops declares here\n",
                                l.target == target::cuda ? "CUDA" : "HOST");
  for (std::string_view h : all) out += fmt::format("#include \"{}\"\n", h);
  return out;
}

}  // namespace

bool has_setting(const lowered& l, const op_row& row) {
  for (const body& b : l.bodies)
    for (const auto* list : {&b.forward, &b.backward})
      for (const node& n : *list)
        if (n.row == &row && !n.attention.is_plain()) return true;
  return false;
}

kernel_members members_of(const op_row& row, target t, bool has_setting) {
  kernel_members m;
  name_scope scope({"on", "T", "matrix", "vector", "workspace", "size_constant", "store"});
  bool sums = false;
  for (const port& p : row.used_ports()) {
    m.operands.push_back(scope.take(p.name));
    sums |= p.as == use::sum;
    m.may_add |= p.adds;
  }
  for (const std::string& symbol : needed_sizes(row, t)) {
    const bool run_time = symbol == "number" || is_first(row, symbol);
    if (run_time || !is_in_a_type(row, symbol))
      (run_time ? m.run_time : m.given)
          .emplace_back(symbol, scope.take(symbol == "number" ? row.number.name : symbol));
  }
  if (has_setting) m.setting = scope.take("setting");
  if (sums || m.may_add) m.into = scope.take("into");
  m.may_add &= !sums;
  return m;
}

kernel_names name_kernels(const lowered& l) {
  kernel_names names;
  name_scope scope({"send",
                    "receive",
                    "all_reduce",
                    "all_gather",
                    "reduce_scatter",
                    "all_to_all",
                    "shift",
                    "shift_back",
                    "to_experts",
                    "from_experts",
                    "share_offsets",
                    "gather_offsets",
                    "gather_shards",
                    "scatter_sums",
                    "all_reduce_in_bf16",
                    "scatter_sums_in_bf16",
                    "add_sums",
                    "sum_squares",
                    "run",
                    "run_by_rows",
                    "real",
                    "wide",
                    "at",
                    "matrix",
                    "vector",
                    "stream",
                    "workspace",
                    "size",
                    "size_constant",
                    "step",
                    "store",
                    "lane",
                    "range"});
  for (const optimizer_row* row : optimizer_rows) scope.take(row->name);
  if (!l.optimizer().header.empty()) scope.take(l.optimizer().name);
  for (const op_row* row : rows_of(l)) names[row] = scope.take(row->name);
  return names;
}

std::string emit_kernels(const lowered& l, const std::string& target) {
  const kernel_names names = name_kernels(l);
  std::string structs;
  for (const op_row* row : rows_of(l))
    structs += kernel_struct(*row, l.target, has_setting(l, *row)).text(names.at(row)) + "\n";
  return fill(templates::program_kernels_hpp, {{"version", version},
                                               {"plan", std::string(l.plan->name)},
                                               {"target", target},
                                               {"plan_id", identifier(l.plan->name)},
                                               {"real", real_name(l)},
                                               {"wide", wide_name(l)},
                                               {"headers", headers(l)},
                                               {"optimizer", emit_optimizer(l)},
                                               {"kernels", structs}});
}

}  // namespace rankc::codegen
