// SPDX-License-Identifier: Apache-2.0
#include <equivalence/fact_table.hpp>
#include <fmt/format.h>

#include <rankc/codegen/declared_facts.hpp>
#include <rankc/ops/table.hpp>

#include <algorithm>
#include <map>
#include <set>

#include "row_dual.hpp"
#include "row_facts.hpp"
#include "undeclared.hpp"

namespace rankc::codegen {

namespace {

using row_facts = specification::row_facts;

/// Collects all rows, each once.
class writer {
 public:
  void add_forward(const trace& t, const rankc::op& o) {
    if (!ops::is_known(o.kind)) add(t, o, true);
  }

  std::vector<row_facts> take() {
    for (bool is_changed = true; is_changed;) {
      is_changed = false;
      for (row_facts& f : rows_) is_changed |= spread_unknown(f);
    }
    return std::move(rows_);
  }

 private:
  struct place {
    const op_row* kind;
    std::size_t index;
  };

  /// The facts of an op's row. The rows that its dual applies are added too.
  row_facts facts_of(const trace& t, const rankc::op& o, bool with_dual) {
    try {
      if (algebra::is_taken(o.kind->name)) give_up("one of rankc's ops has its name");
      row_facts f = row_facts_of(t, o, letters_);
      if (!with_dual) return f;
      if (!o.kind->dual) give_up("it has no dual");
      const row_dual dual(t, o);
      f.gradients = dual.text();
      for (const rankc::op& applied : dual.traced().ops) {
        if (ops::is_known(applied.kind) || applied.kind == o.kind) continue;
        add(dual.traced(), applied, false);
        applied_[f.row].insert(std::string(applied.kind->name));
      }
      return f;
    } catch (const undeclared& why) {
      return {.row = std::string(o.kind->name), .unknown = why.what()};
    }
  }

  /// Adds a row. All ops of a row must give the same facts. Only the row of a forward op has gradients.
  void add(const trace& t, const rankc::op& o, bool is_forward) {
    const std::string name(o.kind->name);
    const auto [known, is_new] = seen_.try_emplace(name, place{o.kind, rows_.size()});
    const place at = known->second;
    if (is_new) rows_.push_back({.row = name});
    const row_facts f = facts_of(t, o, is_forward);
    row_facts& row = rows_[at.index];
    if (is_new) {
      row = f;
      if (is_forward) with_gradients_.insert(name);
    } else if (row.unknown.empty()) {
      row.unknown = find_difference(row, f, at.kind == o.kind, is_forward);
    }
  }
  std::string find_difference(row_facts& row, const row_facts& f, bool is_same, bool is_forward) {
    if (!is_same) return "another row has its name";
    if (!f.unknown.empty()) return f.unknown;
    const bool is_alike = f.ports == row.ports && f.rule == row.rule && f.needs == row.needs &&
                          f.attributes == row.attributes && merge_gradients(row, f, is_forward);
    return is_alike ? "" : "its ops differ in what they declare";
  }
  bool merge_gradients(row_facts& known, const row_facts& f, bool is_forward) {
    if (!is_forward) return true;
    const bool is_first = with_gradients_.insert(f.row).second;
    if (is_first) known.gradients = f.gradients;
    return known.gradients == f.gradients;
  }

  /// Makes the facts of a row unknown if its dual applies a row of unknown facts. Returns true if that is
  /// new.
  bool spread_unknown(row_facts& f) {
    if (!f.unknown.empty()) return false;
    for (const row_facts& other : rows_)
      if (!other.unknown.empty() && applied_[f.row].contains(other.row)) {
        f.unknown = fmt::format("its dual applies {}, and {}", other.row, other.unknown);
        return true;
      }
    return false;
  }

  alphabet letters_;
  std::vector<row_facts> rows_;
  std::map<std::string, place> seen_;
  std::map<std::string, std::set<std::string>> applied_;  // the rows that a row's dual applies
  std::set<std::string> with_gradients_;
};

}  // namespace

std::vector<specification::row_facts> declared_facts(const std::vector<trace>& on_one_device) {
  writer w;
  for (const trace& t : on_one_device)
    for (std::size_t i = 0; i < t.forward_ops; ++i) w.add_forward(t, t.ops[i]);
  return w.take();
}

}  // namespace rankc::codegen
