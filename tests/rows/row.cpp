// SPDX-License-Identifier: Apache-2.0
#include "row.hpp"

#include <algorithm>
#include <stdexcept>

namespace rankc::test::rows {

namespace {

/// Pair a row with its facts, which must have the same port names, dims and constants, and one letter for
/// each symbol.
row pair_up(const op_row& op) {
  const auto fail = [&](const std::string& what) {
    throw std::logic_error(std::string(op.name) + ": " + what);
  };
  const int known = codegen::algebra::find_fact(op.name);
  if (known < 0) fail("it has no facts");
  row r{&op, &codegen::algebra::facts()[static_cast<std::size_t>(known)], {}};
  for (std::size_t p = 0; p < op.used_ports().size(); ++p)
    if (op.ports[p].as != use::scratch) r.ports.push_back(p);
  if (r.ports.size() != r.is->ports.size()) fail("its facts have another number of ports");
  std::map<std::string_view, char> letters;
  std::map<char, std::string_view> symbols;
  const auto same = [&](std::string_view symbol, char letter) {
    if (symbol.empty() != (letter == 0)) fail("its facts have other units");
    if (symbol.empty()) return;
    if (letters.try_emplace(symbol, letter).first->second != letter)
      fail("its facts have two letters for " + std::string(symbol));
    if (symbols.try_emplace(letter, symbol).first->second != symbol)
      fail(std::string("its facts have two axes for ") + letter);
  };
  for (std::size_t i = 0; i < r.ports.size(); ++i) {
    const port& p = r.of(i);
    const codegen::algebra::port& q = r.is->ports[i];
    if (p.name != q.name) fail("its port " + std::string(p.name) + " is " + q.name + " in its facts");
    if (p.is_written() != (i < r.results()))
      fail("its facts do not have " + q.name + " as a result, or as an operand");
    if (static_cast<std::size_t>(p.shape.ndim) != q.axes.size())
      fail(q.name + " has another number of dims in its facts");
    for (std::size_t d = 0; d < q.axes.size(); ++d) {
      const port_dim& dim = p.shape.dim[d];
      if (dim.number) {
        if (q.axes[d].of != '0' + dim.number) fail(q.name + " has another size in its facts");
        continue;
      }
      same(dim.count, q.axes[d].of);
      same(dim.unit, q.axes[d].unit);
    }
  }
  return r;
}

}  // namespace

std::vector<const op_row*> op_rows() {
  std::vector<const op_row*> all(std::begin(ops::all), std::end(ops::all));
  ops::each_fusion([&](const fusion& f) { all.push_back(f.into.kind); });
  ops::each_fp8_row([&](const op_row& r) { all.push_back(&r); });
  all.push_back(&ops::sink_attention);
  all.push_back(&ops::document_sink_attention);
  all.push_back(&ops::clear);
  all.push_back(&ops::copy);
  return all;
}

namespace {
enum class shares { none, chunks, ring, fp8, modelled };
shares shares_of(const row& r) {
  if (r.is->modelled) return shares::modelled;
  const bool merges = r.is->equations[0].is == equation::kind::merge;
  if (std::any_of(r.op->used_ports().begin(), r.op->used_ports().end(),
                  [](const port& p) { return is_fp8(p.holds); }))
    return shares::fp8;
  if (r.is->ring || merges) return shares::ring;
  return r.is->chunks ? shares::chunks : shares::none;
}
std::vector<row> make_rows(shares which) {
  std::vector<row> made;
  for (const op_row* op : op_rows())
    if (row r = pair_up(*op); op->converts == conversion::none && shares_of(r) == which)
      made.push_back(std::move(r));
  return made;
}
}  // namespace
const std::vector<row>& rows() {
  static const std::vector<row> all = make_rows(shares::none);
  return all;
}
const std::vector<row>& chunk_rows() {
  static const std::vector<row> all = make_rows(shares::chunks);
  return all;
}
const std::vector<row>& ring_rows() {
  static const std::vector<row> all = make_rows(shares::ring);
  return all;
}

const std::vector<row>& narrowed_rows() {
  static const std::vector<row> all = make_rows(shares::fp8);
  return all;
}

const std::vector<row>& modelled_rows() {
  static const std::vector<row> all = make_rows(shares::modelled);
  return all;
}

const row& find_row(std::string_view name) {
  const auto at =
      std::find_if(rows().begin(), rows().end(), [&](const row& r) { return r.op->name == name; });
  if (at == rows().end()) throw std::logic_error(std::string(name) + ": no row has that name and a kernel");
  return *at;
}

std::vector<extent> shape(const row& r, std::size_t port, const setting& s) {
  std::vector<extent> dims;
  for (const codegen::algebra::axis_use& a : r.is->ports[port].axes) {
    if (a.of < 'a') dims.push_back({0, 0, a.of - '0', 1});
    else dims.push_back({a.of, a.unit, s.size.at(a.of), a.unit ? s.size.at(a.unit) : 1});
  }
  return dims;
}

std::size_t count(const row& r, std::size_t port, const setting& s) {
  std::size_t n = 1;
  for (const extent& e : shape(r, port, s)) n *= static_cast<std::size_t>(e.elements());
  return n;
}

char first_letter(const row& r) {
  for (std::size_t p = 0; p < r.ports.size(); ++p)
    for (int d = 0; d < r.of(p).shape.ndim; ++d)
      if (!r.of(p).shape.dim[d].first.empty()) return r.is->ports[p].axes[static_cast<std::size_t>(d)].of;
  return 0;
}

double size_of_symbol(const row& r, std::string_view symbol, const setting& s) {
  if (symbol == "number") return s.number;
  if (symbol == "rows") return s.size.at('t') / tokens_of_sequence(r, s);
  if (symbol == "cp") return s.number;
  if (symbol == "ring") return s.ring;
  if (symbol == "seq") return s.seq();
  for (std::size_t p = 0; p < r.ports.size(); ++p) {
    const std::vector<extent> dims = shape(r, p, s);
    if (r.of(p).shape.stride == symbol) return dims.back().elements() + s.gap;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      const port_dim& dim = r.of(p).shape.dim[d];
      if (dim.first == symbol) return s.first;
      if (dim.count == symbol) return dims[d].count;
      if (dim.unit == symbol) return dims[d].unit;
    }
  }
  throw std::logic_error(std::string(r.op->name) + ": its kernel takes \"" + std::string(symbol) +
                         "\", which no port has");
}

std::vector<std::string_view> words(std::string_view text, char separator) {
  std::vector<std::string_view> all;
  while (!text.empty()) {
    all.push_back(text.substr(0, text.find(separator)));
    text.remove_prefix(std::min(text.size(), all.back().size() + 1));
  }
  return all;
}

namespace {

/// Sizes that satisfy the facts: tokens in whole sequences, query heads in groups, and features as the sum of
/// two parts.
setting fitted(const row& r, std::map<char, int> size, int first, int gap) {
  setting s{std::move(size), first_letter(r) ? first : 0, 0.37, gap};
  if (r.is->sequences || r.is->shares) s.size['t'] *= s.seq();
  if (r.is->groups) s.size['h'] *= s.size['k'];
  s.size['n'] = (s.first + s.size['t'] + s.seq() - 1) / s.seq() *
                s.seq();  // the tokens of the whole sequences that contain the op's tokens
  if (r.is->parts) s.size['w'] = s.size['l'] + s.size['r'];
  s.size['e'] = s.size['l'] + s.size['h'];  // experts: more than picks
  s.size['g'] = 2 * s.size['r'];            // segments of slots: two for each expert
  s.size['f'] = s.size['o'];
  s.size['m'] = r.is->pooled ? s.size['t'] : 1;  // sequences, or one group of the rank's tokens
  if (r.is->pooled) s.size['t'] *= s.seq();
  if (r.is->counts || r.op->name.starts_with("overflow_loss")) s.size['r'] = std::max(2, s.size['r']);
  if (r.op == &ops::push || r.op == &ops::push_grad) s.size['o'] = s.size['i'] = 2 * s.size['l'];
  if (r.is->grouped) {
    s.size['l'] = 3;
    s.size['i'] = std::min(s.size['i'], s.size['r']);
  }  // l: picks
  if (r.op->name.starts_with("mask_padding")) s.number = s.first + s.size['v'] / 2;  // columns that are kept
  if (r.op->find("kept") >= 0) s.number = std::min(2, s.size['e']);  // number of experts that score a group
  if (r.op->find("whole") >= 0) s.size['l'] = 6;                     // statistics of two layers
  return s;
}

// t: tokens, or sequences of s tokens; l: picks out of e or r experts; h: heads, or query heads per key head
// of k; d: elements of a head, of which kernels rotate halves.
using sizes = std::map<char, int>;
const sizes primes{{'t', 7}, {'s', 3},  {'i', 5}, {'o', 11}, {'w', 13}, {'l', 5},
                   {'r', 7}, {'v', 17}, {'h', 3}, {'k', 2},  {'d', 6}},
    one_token{{'t', 1}, {'s', 1}, {'i', 3}, {'o', 2}, {'w', 7}, {'l', 3},
              {'r', 2}, {'v', 5}, {'h', 2}, {'k', 3}, {'d', 2}},
    ones{{'t', 1}, {'s', 1}, {'i', 1}, {'o', 1}, {'w', 1}, {'l', 1},
         {'r', 1}, {'v', 1}, {'h', 1}, {'k', 1}, {'d', 2}},
    past_tiles{{'t', 67}, {'s', 131}, {'i', 67}, {'o', 131}, {'w', 257}, {'l', 29},
               {'r', 67}, {'v', 263}, {'h', 2},  {'k', 2},   {'d', 34}},
    tiles{{'t', 64}, {'s', 128}, {'i', 64}, {'o', 128}, {'w', 256}, {'l', 64},
          {'r', 32}, {'v', 256}, {'h', 2},  {'k', 2},   {'d', 64}};

}  // namespace

setting small(const row& r) { return fitted(r, primes, 5, 3); }

std::vector<setting> settings(const row& r) {
  std::vector<setting> all{small(r), fitted(r, one_token, 0, 1), fitted(r, ones, 0, 0)};
  for (sizes large : {past_tiles, tiles}) {
    if (r.is->sequences || r.is->pooled || r.is->shares) large['t'] = 2;
    // w of attention: elements of a value's head, which the kernels of tiles take as large as a key's.
    if (r.is->sequences) large['w'] = large['d'] % 64 == 0 ? large['d'] : 39;
    all.push_back(fitted(r, large, 150, 8));
  }
  return all;
}

}  // namespace rankc::test::rows
