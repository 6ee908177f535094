// SPDX-License-Identifier: Apache-2.0
// Exchanged live values: two operands of two ops, all operands of an op, or a value from one op on.
#include "mutator.hpp"

namespace field {

namespace {

/// An access of an op: the op's index, and the read's or write's index.
struct place {
  std::size_t op, access;
};

bool is_alike(const access& a, const access& b) {
  return a.end - a.begin == b.end - b.begin && a.type == b.type && a.value != b.value;
}

/// The op that writes a value; the number of ops if none does.
std::size_t writer_of(const std::vector<op>& ops, int value) {
  const auto writes = [value](const op& o) {
    return std::any_of(o.writes.begin(), o.writes.end(),
                       [value](const access& a) { return a.value == value; });
  };
  return static_cast<std::size_t>(std::find_if(ops.begin(), ops.end(), writes) - ops.begin());
}

/// Whether a result of the op replaces a read.
bool is_replaced(const op& o, std::size_t read) {
  return std::any_of(o.writes.begin(), o.writes.end(),
                     [read](const access& w) { return w.replaces == static_cast<int>(read); });
}

/// Draw a read that no result replaces.
bool draw_read(mutator& m, place& at) {
  const auto has_read = [](const op& o) {
    for (std::size_t k = 0; computes(o) && k < o.reads.size(); ++k)
      if (!is_replaced(o, k)) return true;
    return false;
  };
  if (!m.turn_to(has_read)) return false;
  std::vector<std::size_t> reads;
  for (std::size_t k = 0; k < m.at().reads.size(); ++k)
    if (!is_replaced(m.at(), k)) reads.push_back(k);
  at = {static_cast<std::size_t>(m.i), m.one_of(reads)};
  return true;
}

std::string name_of(const std::vector<op>& ops, const place& at) {
  return "\"" + ops[at.op].name + "\" read " + std::to_string(at.access);
}

/// Two ops exchange an operand that is written before either runs.
fault exchange_reads(mutator& m) {
  place own{};
  if (!draw_read(m, own)) return {};
  const access mine = m.ops()[own.op].reads[own.access];
  std::vector<place> others;
  for (std::size_t n = own.op + 1; n < m.ops().size(); ++n)
    for (std::size_t k = 0; computes(m.ops()[n]) && k < m.ops()[n].reads.size(); ++k)
      if (const access& a = m.ops()[n].reads[k];
          is_alike(mine, a) && !is_replaced(m.ops()[n], k) && writer_of(m.ops(), a.value) < own.op)
        others.push_back({n, k});
  if (others.empty()) return {};
  const place other = m.one_of(others);
  const std::string text = m.text() + " and " + name_of(m.ops(), other), name = m.ops()[other.op].name;
  for (int r : m.ranks_that_have_it()) {
    std::vector<op>& ops = m.p.ranks[static_cast<std::size_t>(r)].ops;
    if (other.op < ops.size() && ops[other.op].name == name)
      std::swap(ops[own.op].reads[own.access], ops[other.op].reads[other.access]);
  }
  return {"operands of two ops", text};
}

/// An op reads all operands of an earlier op of its row.
fault take_all_operands(mutator& m) {
  if (!m.turn_to([](const op& o) { return computes(o) && !o.reads.empty(); })) return {};
  const op own = m.at();
  std::vector<std::size_t> others;
  for (std::size_t n = 0; n < static_cast<std::size_t>(m.i); ++n) {
    const op& o = m.ops()[n];
    const auto alike = [](const access& a, const access& b) {
      return a.end - a.begin == b.end - b.begin && a.type == b.type;
    };
    if (o.row == own.row && o.reads != own.reads &&
        std::equal(o.reads.begin(), o.reads.end(), own.reads.begin(), own.reads.end(), alike))
      others.push_back(n);
  }
  if (others.empty()) return {};
  const std::size_t n = m.one_of(others);
  const std::string name = m.ops()[n].name, text = m.text() + " as \"" + name + "\"";
  for (int r : m.ranks_that_have_it()) {
    std::vector<op>& ops = m.p.ranks[static_cast<std::size_t>(r)].ops;
    op& o = ops[static_cast<std::size_t>(m.i)];
    for (std::size_t k = 0; ops[n].name == name && k < o.reads.size() && k < ops[n].reads.size(); ++k)
      if (!is_replaced(o, k)) o.reads[k] = ops[n].reads[k];
  }
  return {"operands of another op", text};
}

/// From one op on, exchange two values in all reads.
fault exchange_values(mutator& m) {
  place own{};
  if (!draw_read(m, own)) return {};
  const access mine = m.ops()[own.op].reads[own.access];
  std::vector<access> others;
  for (std::size_t n = own.op; n < m.ops().size(); ++n)
    for (const access& a : m.ops()[n].reads)
      if (is_alike(mine, a) && writer_of(m.ops(), a.value) < own.op) others.push_back(a);
  if (others.empty()) return {};
  const access other = m.one_of(others);
  for (std::size_t n = own.op; n < m.ops().size(); ++n)
    for (access& a : m.ops()[n].reads) {
      if (a.value == mine.value) a = other;
      else if (a.value == other.value) a = mine;
    }
  return {"two values", m.text() + " and later: values " + std::to_string(mine.value) + " and " +
                            std::to_string(other.value)};
}

}  // namespace

const std::vector<fault_kind> edits_of_operands{exchange_reads, take_all_operands, exchange_values};

}  // namespace field
