// SPDX-License-Identifier: Apache-2.0
#include "rows.hpp"

#include "model_attributes.hpp"

#include <algorithm>
#include <map>
#include <optional>

namespace field {

namespace {

/// Take the next word from the beginning of a text; empty at its end.
std::string_view take_word(std::string_view& text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  const std::size_t end = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end);
  return word;
}

signature read_signature(std::string_view text) {
  signature s;
  bool left = true;
  for (std::string_view w = take_word(text); !w.empty(); w = take_word(text)) {
    if (w == "=") left = false;
    else (left ? s.out : s.in).push_back(w);
  }
  return s;
}

std::vector<statement> read_statements(std::string_view text) {
  std::vector<statement> all;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(';'), text.size());
    std::string_view one = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const row& does = find_row(take_word(one));
    const signature s = read_signature(one);
    all.push_back({&does, s.out, s.in});
  }
  return all;
}

/// A row's text, parsed once.
struct read_row {
  signature ports;
  std::optional<std::vector<statement>> definition, backward;
};
read_row& read(const row& r) {
  static std::vector<read_row> all = [] {
    std::vector<read_row> of;
    for (const row& each : all_rows()) of.push_back({read_signature(each.ports), {}, {}});
    return of;
  }();
  return all[static_cast<std::size_t>(&r - all_rows().data())];
}
const std::vector<statement>& read_once(std::optional<std::vector<statement>>& into, std::string_view text) {
  if (!into) into = read_statements(text);
  return *into;
}

/// Run a fused row as the plain rows that define it.
void run_definition(const row& r, call& c) {
  std::map<std::string_view, const matrix*> known;
  std::vector<call> steps;
  const std::vector<statement>& definition = read_once(read(r).definition, r.definition);
  steps.reserve(definition.size());
  for (std::string_view p : ports_of(r).in) known[p] = &c.in(p);
  for (const statement& s : definition) {
    call& inner = steps.emplace_back();
    inner.rows = c.rows;
    inner.seq = c.seq;
    inner.number = c.number;
    inner.attention = c.attention;
    inner.noted_by = c.noted_by;
    inner.rounds = c.rounds;
    inner.held_to = c.held_to;
    const signature& ports = ports_of(*s.does);
    for (std::size_t i = 0; i < s.in.size(); ++i) {
      const bool is_own =
          std::find(ports_of(r).in.begin(), ports_of(r).in.end(), s.in[i]) != ports_of(r).in.end();
      inner.give(ports.in[i], *known.at(s.in[i]), is_own ? c.first(s.in[i]) : 0);
    }
    for (std::size_t i = 0; i < s.out.size(); ++i)
      if (c.wants(s.out[i])) inner.want(ports.out[i], c.wanted(s.out[i]));
    run(*s.does, inner);
    c.agrees &= inner.agrees;
    for (std::size_t i = 0; i < s.out.size(); ++i) known[s.out[i]] = &inner.result(ports.out[i]);
  }
  for (std::string_view p : ports_of(r).out) {
    const matrix& made = *known.at(p);
    c.out(p, made.is.rows, made.is.cols, made.is.unit).of = made.of;
  }
}

}  // namespace

void expect(bool holds, const char* what) {
  if (!holds) throw malformed(what);
}

namespace {

/// Rows and kernels read the first number, and divide by the count.
void expect_some(std::string_view port, const extent& e) {
  if (e.rows == 0 || e.cols == 0) throw malformed("port '" + std::string(port) + "' is of nothing");
}

}  // namespace

void call::give(std::string_view port, matrix m, std::int64_t first) {
  expect_some(port, m.is);
  given_.push_back({port, std::move(m), first});
}
void call::want(std::string_view port, extent e, std::int64_t first) {
  expect_some(port, e);
  wanted_.push_back({port, matrix{}, first, e});
}

const matrix& call::in(std::string_view port) const {
  for (const operand& o : given_)
    if (o.port == port) return o.m;
  throw malformed("port '" + std::string(port) + "' is not given");
}
std::int64_t call::first(std::string_view port) const {
  for (const operand& o : given_)
    if (o.port == port) return o.first;
  for (const operand& o : wanted_)
    if (o.port == port) return o.first;
  throw malformed("port '" + std::string(port) + "' is not given");
}
bool call::wants(std::string_view port) const {
  return std::any_of(wanted_.begin(), wanted_.end(), [&](const operand& o) { return o.port == port; });
}
extent call::wanted(std::string_view port) const {
  for (const operand& o : wanted_)
    if (o.port == port) return o.e;
  throw malformed("port '" + std::string(port) + "' is not wanted");
}
matrix& call::out(std::string_view port, std::int64_t rows_of, std::int64_t cols, std::int64_t unit) {
  extent e{rows_of, cols, unit};
  for (const operand& o : wanted_)
    if (o.port == port) {
      if (o.e.rows != rows_of || o.e.cols != cols)
        throw malformed("port '" + std::string(port) + "' is of another size than the others make it");
      e.unit = o.e.unit;
    }
  made_.reserve(4);
  return made_.emplace_back(operand{port, matrix(e), 0, {}}).m;
}
matrix& call::out(std::string_view port) {
  const extent e = wanted(port);
  return out(port, e.rows, e.cols, e.unit);
}
const matrix& call::result(std::string_view port) const {
  for (const operand& o : made_)
    if (o.port == port) return o.m;
  throw malformed("port '" + std::string(port) + "' is not made");
}

const row& find_row(std::string_view name) {
  static const std::map<std::string_view, const row*> by_name = [] {
    std::map<std::string_view, const row*> all;
    for (const row& r : all_rows()) all[r.name] = &r;
    return all;
  }();
  const auto found = by_name.find(name);
  if (found == by_name.end()) throw malformed("no row is called '" + std::string(name) + "'");
  return *found->second;
}

void run(const row& r, call& c) {
  if (c.noted_by) c.noted_by->note(r, c);
  if (c.held_to) c.agrees &= c.held_to->agree(r, c);
  if (r.compute) r.compute(c);
  else run_definition(r, c);
}

const signature& ports_of(const row& r) { return read(r).ports; }
const std::vector<statement>& backward_of(const row& r) { return read_once(read(r).backward, r.backward); }

bool may_lie_over(const row& r, std::string_view result, std::string_view operand) {
  std::string_view text = r.over;
  for (std::string_view w = take_word(text); !w.empty(); w = take_word(text))
    if (w.substr(0, w.find(':')) == result && w.substr(w.find(':') + 1) == operand) return true;
  return false;
}
bool takes_stride(const row& r, std::string_view port) {
  std::string_view text = r.strided;
  for (std::string_view w = take_word(text); !w.empty(); w = take_word(text))
    if (w == port) return true;
  return false;
}

std::int64_t token_of_chunks(const call& c, std::int64_t n) {
  const auto ranks = static_cast<std::int64_t>(c.number);
  expect(c.number >= 1 && c.number <= 1 << 10 && c.rows > 0 && c.seq > 0 && c.seq % (2 * ranks) == 0,
         "sequences that do not divide into chunks");
  expect(n >= 0 && n < c.rows * c.seq, "a token of no rank");
  const std::int64_t chunk = c.seq / (2 * ranks), of_rank = 2 * chunk * c.rows;
  const std::int64_t rank = n / of_rank, row = n % of_rank / (2 * chunk), place = n % (2 * chunk);
  return row * c.seq + (place < chunk ? rank : 2 * ranks - 1 - rank) * chunk + place % chunk;
}

const matrix& starts_of(const call& c) {
  const matrix& starts = c.in("starts");
  expect(c.rows > 0 && c.seq > 0 && starts.is.size() == c.rows * c.seq, "starts of other sequences");
  for (std::int64_t t = 0; t < starts.is.size(); ++t) {
    const auto start = static_cast<double>(starts.of[static_cast<std::size_t>(t)]);
    expect(start >= 0 && start <= static_cast<double>(t % c.seq), "a document that begins after its token");
  }
  return starts;
}

}  // namespace field
