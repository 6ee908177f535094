// SPDX-License-Identifier: Apache-2.0
// Faults of a whole op: omitted, repeated, another row, other attributes, another operand.
#include "mutator.hpp"

namespace field {

namespace {

bool same_bytes(const access& a, const access& b) { return a.begin == b.begin && a.end == b.end; }

/// The value in a write's bytes before op k; -1 if no write had exactly these bytes.
int value_before(const std::vector<op>& ops, int k, const access& w) {
  for (int n = k - 1; n >= 0; --n)
    for (const access& a : ops[static_cast<std::size_t>(n)].writes)
      if (same_bytes(a, w)) return a.value;
  return -1;
}

/// Remove an op: readers of its results read the values before it.
fault leave_out(mutator& m) {
  if (!m.turn_to([](const op& o) { return o.kind == op_kind::compute || o.kind == op_kind::collective; }))
    return {};
  const std::string text = m.text();
  for (const access& w : std::vector<access>(m.at().writes))
    if (const int before = value_before(m.ops(), m.i, w); before >= 0) m.rename(m.rank, w.value, before);
  std::vector<int> waits = m.at().waits;  // its successors now wait for all its predecessors
  const int k = m.i, stream = m.at().stream;
  int previous = k - 1, next = k + 1;
  while (previous > 0 && m.ops()[static_cast<std::size_t>(previous)].stream != stream) --previous;
  while (next + 1 < static_cast<int>(m.ops().size()) &&
         m.ops()[static_cast<std::size_t>(next)].stream != stream)
    ++next;
  waits.push_back(previous);
  for (int n = k + 1; n < static_cast<int>(m.ops().size()); ++n) {
    op& o = m.ops()[static_cast<std::size_t>(n)];
    if (n == next || std::count(o.waits.begin(), o.waits.end(), k))
      o.waits.insert(o.waits.end(), waits.begin(), waits.end());
  }
  m.renumber_waits([k](int w) { return w == k ? -1 : w - (w > k); });
  m.ops().erase(m.ops().begin() + k);
  return {"leave out", text};
}

/// Run an op twice. The second reads the results of the first where these replaced its operands.
fault do_twice(mutator& m) {
  if (!m.turn_to([](const op& o) { return computes(o) && !o.writes.empty(); })) return {};
  op again = m.at();
  again.waits.clear();
  int fresh = m.fresh_value();
  for (access& w : again.writes) {
    for (access& r : again.reads)
      if (same_bytes(r, w)) r.value = w.value;
    const int old = std::exchange(w.value, fresh++);
    for (op& o : m.ops())
      if (&o != &m.at())
        for (access& a : o.reads)
          if (a.value == old) a.value = w.value;
  }
  const std::string text = m.text();
  const int k = m.i;
  m.renumber_waits([k](int w) { return w + (w >= k); });
  m.ops().insert(m.ops().begin() + k + 1, std::move(again));
  return {"do twice", text};
}

/// Scale, squash or clear a result in place before it is read.
fault insert_op(mutator& m) {
  const auto writes_rows = [](const op& o) {
    return o.kind == op_kind::compute && !o.writes.empty() && !o.views.empty() && o.views[0].written &&
           !o.views[0].shape.empty();
  };
  if (!m.turn_to(writes_rows)) return {};
  const op& own = m.at();
  const view made = own.views[0];
  const access lies = own.writes[static_cast<std::size_t>(made.accesses.first)];
  view to{.port = "y",
          .written = true,
          .accesses = {0, 1},
          .offset = made.offset,
          .shape = made.shape,
          .stride = made.stride},
      from = to;
  from.port = "x";
  from.written = false;
  op inserted;
  inserted.name = own.name + ", then";
  inserted.stream = own.stream;
  inserted.function = "scale";
  inserted.row = "scale";
  if (m.below(3) == 0) inserted.row = m.below(2) ? "sigmoid" : "clear";
  if (inserted.row == "scale") inserted.number = m.below(2) ? 0.5 : 2;
  inserted.reads = {lies};
  inserted.writes = {lies};
  inserted.reads[0].replaces = -1;
  inserted.writes[0].replaces = 0;
  inserted.writes[0].value = m.fresh_value();
  inserted.views = {to};
  if (inserted.row != "clear") inserted.views.push_back(from);
  for (op& o : m.ops())
    for (access& a : o.reads)
      if (a.value == lies.value) a.value = inserted.writes[0].value;
  const std::string text = m.text() + " " + std::string(inserted.row);
  const int k = m.i;
  m.renumber_waits([k](int w) { return w + (w >= k); });
  m.ops().insert(m.ops().begin() + k + 1, std::move(inserted));
  return {"insert an op", text};
}

/// A row with its ports and attributes.
struct row_with_attributes {
  std::string_view row;
  std::vector<view> views;
  std::int64_t rows = 0, seq = 0;
  double number = 0;
};
/// Use another row of the program with operands of these sizes; or, for one operand and one result, an
/// elementwise row.
fault take_another_row(mutator& m) {
  if (!m.turn_to(computes)) return {};
  const op own = m.at();
  const auto fits = [](const view& a, const view& b) { return a.written == b.written && a.shape == b.shape; };
  std::vector<row_with_attributes> rows;
  for (const op& o : m.ops())
    if (computes(o) && o.row != own.row &&
        std::equal(o.views.begin(), o.views.end(), own.views.begin(), own.views.end(), fits))
      rows.push_back({o.row, o.views, o.rows, o.seq, o.number});
  if (own.views.size() == 2 && own.views[0].shape == own.views[1].shape)
    for (std::string_view row : {"gelu", "sigmoid", "copy", "scale", "softmax"})
      if (row != own.row)
        rows.push_back({row, {{.port = "y"}, {.port = "x"}}, 0, 0, row == "scale" ? 1.0 : 0.0});
  if (rows.empty()) return {};
  const row_with_attributes& other = m.one_of(rows);
  return m.done("another row", " as " + std::string(other.row), m.change([&](op& o) {
    if (o.views.size() != other.views.size()) return false;
    o.row = other.row;
    o.rows = other.rows;
    o.seq = other.seq;
    o.number = other.number;
    for (std::size_t v = 0; v < other.views.size(); ++v) {
      o.views[v].port = other.views[v].port;
      o.views[v].unit = other.views[v].unit;
    }
    return true;
  }));
}

fault change_attention(mutator& m) {
  const int way = m.below(5);
  return m.done("attention", "", m.change([&](op& o) {
    const rankc::attention_setting before = o.attention;
    if (way == 0) o.attention.window += 1;
    else if (way == 1) o.attention.softcap += 0.5;
    else if (way == 2) o.attention.scale += 0.25;
    else if (way == 3) o.attention.causal = !o.attention.causal;
    else o.attention = {};
    return o.attention != before;
  }));
}
/// Change the number of an op, or a window, softcap or scale of attention that has one.
fault change_number(mutator& m) {
  const auto has_number = [](const op& o) { return o.number != 0 || !o.attention.is_plain(); };
  if (!m.turn_to([&](const op& o) { return computes(o) && has_number(o); })) return {};
  if (!m.at().attention.is_plain()) return change_attention(m);
  const double factor = std::vector<double>{2, 0.5, -1, 0, 1.0000001}[static_cast<std::size_t>(m.below(5))];
  return m.done("number", " times " + std::to_string(factor),
                m.change([&](op& o) { return std::exchange(o.number, o.number * factor) != o.number; }));
}
fault change_rows(mutator& m) {
  if (!m.turn_to([](const op& o) { return computes(o) && o.rows > 0; })) return {};
  const int way = m.below(3);
  return m.done("rows and seq", "", m.change([&](op& o) {
    if (way == 0) std::swap(o.rows, o.seq);
    else if (way == 1 && o.seq % 2 == 0) {
      o.rows *= 2;
      o.seq /= 2;
    } else o.rows += 1;
    return true;
  }));
}
fault change_seq(mutator& m) {
  if (!m.turn_to([](const op& o) { return computes(o) && o.seq > 0 && o.rows == 0; })) return {};
  const int by = m.below(2) ? 1 : -1;
  return m.done("seq", "", m.change([&](op& o) {
    o.seq += by;
    return true;
  }));
}

/// A result replaces another read, or none.
fault change_replaced(mutator& m) {
  if (!m.turn_to([](const op& o) { return !o.writes.empty() && !o.reads.empty(); })) return {};
  const auto w = static_cast<std::size_t>(m.below(static_cast<int>(m.at().writes.size())));
  const int read = m.below(static_cast<int>(m.at().reads.size()) + 1) - 1;
  return m.done("order: replaced read", " write " + std::to_string(w), m.change([&](op& o) {
    if (w >= o.writes.size() || read >= static_cast<int>(o.reads.size())) return false;
    return std::exchange(o.writes[w].replaces, read) != read;
  }));
}

/// Read another live value of as many bytes, which a nearby op on the same stream reads.
fault read_another(mutator& m) {
  const bool of_send = m.below(4) == 0;
  if (!m.turn_to(
          [&](const op& o) { return (of_send ? o.kind == op_kind::send : computes(o)) && !o.reads.empty(); }))
    return {};
  const std::size_t k = static_cast<std::size_t>(m.below(static_cast<int>(m.at().reads.size())));
  const access old = m.at().reads[k];
  for (const access& w : m.at().writes)
    if (w.replaces == static_cast<int>(k)) return {};
  std::vector<access> others;
  const int reach = m.below(2) ? 6 : static_cast<int>(m.ops().size());
  for (int n = std::max(0, m.i - reach); n < std::min<int>(static_cast<int>(m.ops().size()), m.i + reach);
       ++n)
    for (const auto* list :
         {&m.ops()[static_cast<std::size_t>(n)].reads, &m.ops()[static_cast<std::size_t>(n)].writes})
      for (const access& a : *list)
        if (a.end - a.begin == old.end - old.begin && a.type == old.type && a.value != old.value &&
            (list == &m.ops()[static_cast<std::size_t>(n)].reads || n < m.i))
          others.push_back(a);
  if (others.empty()) return {};
  access other = m.one_of(others);
  other.replaces = -1;
  m.at().reads[k] = other;
  if (of_send) m.rename(m.at().peer, old.value, other.value);
  return {of_send ? "another message" : "another operand", m.text()};
}

/// Two ops of one row exchange their results' addresses: gradients of two weights, for example.
fault exchange_results(mutator& m) {
  if (!m.turn_to([](const op& o) { return computes(o) && !o.writes.empty(); })) return {};
  std::vector<int> others;
  for (int n = 0; n < static_cast<int>(m.ops().size()); ++n) {
    const op& o = m.ops()[static_cast<std::size_t>(n)];
    if (n != m.i && o.row == m.at().row && o.writes.size() == m.at().writes.size() &&
        o.reads.size() == m.at().reads.size() &&
        o.writes[0].end - o.writes[0].begin == m.at().writes[0].end - m.at().writes[0].begin &&
        o.stream == m.at().stream)
      others.push_back(n);
  }
  if (others.empty()) return {};
  op& other = m.ops()[static_cast<std::size_t>(m.one_of(others))];
  op& own = m.at();
  const auto read_at = [](op& o) -> access* {
    for (access& r : o.reads)
      if (same_bytes(r, o.writes[0])) return &r;
    return nullptr;
  };
  access *a = read_at(own), *b = read_at(other);
  if ((a == nullptr) != (b == nullptr)) return {};
  if (a) std::swap(*a, *b);
  std::swap(own.writes[0], other.writes[0]);
  return {"exchange results", m.text()};
}

}  // namespace

const std::vector<fault_kind> faults_of_ops{change_number, change_rows, change_seq, change_replaced};
const std::vector<fault_kind> edits_of_ops{leave_out,        do_twice,     insert_op,
                                           take_another_row, read_another, exchange_results};

}  // namespace field
