// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <rankc/codegen/declared_facts.hpp>
#include <rankc/ops/table.hpp>

#include <algorithm>
#include <map>
#include <set>

#include "row_dual.hpp"
#include "row_facts.hpp"

namespace rankc::codegen {

namespace {

/// All rows, each once.
class writer {
 public:
  void add_forward(const trace& t, const op& o) {
    if (ops::is_known(o.kind)) return;
    const std::size_t at = add(t, o);
    if (!rows_[at].unknown.empty() || !with_duals_.insert(o.kind).second) return;
    try {
      add_dual(t, o, at);
    } catch (const undeclared& why) {
      rows_[at].unknown = why.what();
    } catch (const row_dual::untold& why) {
      rows_[at].unknown = why.what();
    }
  }

  std::vector<specification::row_facts> take() { return std::move(rows_); }

 private:
  /// Add the facts of an op's row, or compare them with those that follow from another op. Returns their place.
  std::size_t add(const trace& t, const op& o) {
    const auto [known, is_new] = seen_.try_emplace(o.kind, rows_.size());
    const std::size_t at = known->second;
    if (is_new) rows_.push_back({.row = std::string(o.kind->name), .unknown = name_taken(o)});
    specification::row_facts& f = rows_[at];
    if (!f.unknown.empty()) return at;
    try {
      const specification::row_facts of_op = row_facts_of(t, o, letters_);
      if (is_new) f = of_op;
      if (f.ports != of_op.ports || f.rule != of_op.rule || f.attributes != of_op.attributes)
        throw undeclared("its ops differ in what they declare");
    } catch (const undeclared& why) {
      f.unknown = why.what();
    }
    return at;
  }
  /// Why the facts of a new row cannot go by its name; empty: they can.
  std::string name_taken(const op& o) const {
    const bool is_taken =
        std::any_of(rows_.begin(), rows_.end(), [&](const auto& other) { return other.row == o.kind->name; });
    return is_taken ? "another row has its name" : "";
  }

  /// The gradients of a row, and the rows by which they are made.
  void add_dual(const trace& t, const op& o, std::size_t at) {
    if (!o.kind->dual) throw undeclared("it has no dual");
    const row_dual dual(t, o);
    rows_[at].gradients = dual.text();
    if (rows_[at].gradients.empty()) rows_[at].needs += rows_[at].needs.empty() ? "stops" : " stops";
    for (const op& applied : dual.traced().ops) {
      if (ops::is_known(applied.kind)) continue;
      const specification::row_facts& of = rows_[add(dual.traced(), applied)];
      if (!of.unknown.empty())
        throw undeclared(fmt::format("its dual applies {}, and of that {}", of.row, of.unknown));
    }
  }

  alphabet letters_;
  std::map<const op_row*, std::size_t> seen_;  // and the places of their facts
  std::set<const op_row*> with_duals_;
  std::vector<specification::row_facts> rows_;
};

}  // namespace

std::vector<specification::row_facts> declared_facts(const std::vector<trace>& on_one_device) {
  writer w;
  for (const trace& t : on_one_device)
    for (std::size_t i = 0; i < t.forward_ops; ++i) w.add_forward(t, t.ops[i]);
  return w.take();
}

}  // namespace rankc::codegen
