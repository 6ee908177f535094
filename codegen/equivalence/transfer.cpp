// SPDX-License-Identifier: Apache-2.0
#include "transfer.hpp"

#include <cmath>

#include "cell.hpp"
#include "collectives.hpp"

namespace rankc::codegen::algebra {

namespace {

/// Measures the axes on this rank, and checks that each letter of the row has one size.
void measure(const fact& f, const std::vector<operand>& ports, cell& c) {
  const auto is = [&](char letter, std::int64_t size, const std::string& name) {
    std::int64_t& known = c.length[c.slot(letter)];
    if (known >= 0 && known != size)
      throw refusal("RC7680: tensor {} has {} {}; expected {}, as another operand has", name, size,
                    axis_name(letter), known);
    known = size;
    c.range[c.slot(letter)] = {0, size};
  };
  for (std::size_t i = 0; i < f.ports.size(); ++i) {
    const operand& o = ports[i];
    const port& p = f.ports[i];
    if (o.ndim < 0) continue;
    if (o.ndim != static_cast<int>(p.axes.size()))
      throw refusal("RC7681: tensor {} is given with {} dims; expected {}", p.name, o.ndim, p.axes.size());
    for (std::size_t a = 0; a < p.axes.size(); ++a) {
      const axis_use& axis = p.axes[a];
      const std::int64_t size = p.axes.size() == 2 && a == 0 ? o.rows : o.cols;
      if (axis.of < 'a') {
        if (size != axis.of - '0')
          throw refusal("RC7682: tensor {} has {} columns; expected {}", p.name, size, axis.of);
        continue;
      }
      if (axis.unit) is(axis.unit, o.unit, p.name);
      if (axis.unit && size % o.unit)
        throw refusal("RC7683: tensor {} has {} columns; expected a multiple of {}, the size of a head",
                      p.name, size, o.unit);
      is(axis.of, axis.unit ? size / o.unit : size, p.name);
    }
  }
}

/// Sets the shape of a result that has no view, from the facts of its op's row.
void shape_result(const port& p, operand& o, const cell& c) {
  o.ndim = static_cast<int>(p.axes.size());
  o.unit = 1;
  for (std::size_t a = 0; a < p.axes.size(); ++a) {
    const axis_use& axis = p.axes[a];
    const std::int64_t unit = axis.unit ? c.length[c.slot(axis.unit)] : 1;
    const std::int64_t size = axis.of < 'a' ? axis.of - '0' : c.length[c.slot(axis.of)] * unit;
    (o.ndim == 2 && a == 0 ? o.rows : o.cols) = size;
    o.unit = std::max(o.unit, unit);
  }
}

struct letter_cuts {
  char letter;
  std::vector<std::int64_t> at;  // first index of each cell, and the end
};

/// The letters along which an operand consists of several tensors.
std::vector<letter_cuts> cuts(const fact& f, const std::vector<operand>& ports) {
  std::vector<letter_cuts> all;
  const auto add = [&](const axis_use& axis, std::int64_t unit, std::int64_t begin, std::int64_t end,
                       std::int64_t length) {
    if (axis.of < 'a' || (begin == 0 && end == length)) return;
    if (axis.unit && (begin % unit || end % unit))
      throw refusal("RC7684: an operand is columns {}..{} of one tensor; expected whole heads of {}", begin,
                    end - 1, unit);
    auto known =
        std::find_if(all.begin(), all.end(), [&](const letter_cuts& k) { return k.letter == axis.of; });
    if (known == all.end()) known = all.insert(all.end(), {axis.of, {0, length / (axis.unit ? unit : 1)}});
    for (const std::int64_t x : {begin, end}) known->at.push_back(x / (axis.unit ? unit : 1));
  };
  for (std::size_t i = static_cast<std::size_t>(f.results); i < f.ports.size(); ++i)
    for (int k = 0; k < ports[i].tiles.size(); ++k) {
      const tile& t = ports[i].tiles[k];
      const std::vector<axis_use>& axes = f.ports[i].axes;
      if (axes.size() == 2) add(axes[0], ports[i].unit, t.row, t.row + t.rows, ports[i].rows);
      if (!axes.empty()) add(axes.back(), ports[i].unit, t.col, t.col + t.cols, ports[i].cols);
    }
  for (letter_cuts& k : all) {
    std::sort(k.at.begin(), k.at.end());
    k.at.erase(std::unique(k.at.begin(), k.at.end()), k.at.end());
  }
  return all;
}

/// Checks that a result may be computed in parts of an axis: it has the axis, or is a sum over it.
void check_divisible(const fact& f, const equation& e, const std::vector<letter_cuts>& along) {
  for (const letter_cuts& k : along) {
    const std::vector<axis_use>& axes = f.ports[static_cast<std::size_t>(e.results[0])].axes;
    const bool has =
        std::any_of(axes.begin(), axes.end(), [&](const axis_use& a) { return a.of == k.letter; });
    if (!has && (e.how != joining::sum || e.over.find(k.letter) == std::string::npos))
      throw refusal("RC7685: the {} of the op's operands are those of several tensors; expected one",
                    axis_name(k.letter));
  }
}

}  // namespace

void transfer::put(const fact& f, const equation& e, std::vector<operand>& ports, const cell& c,
                   holding made) {
  const std::size_t result = static_cast<std::size_t>(e.results[0]);
  const port& p = f.ports[result];
  operand& o = ports[result];
  const interval rows = p.axes.size() == 2 ? c.extent(o, p.axes[0], true) : interval{0, 1};
  const interval cols = p.axes.empty() ? interval{0, 1} : c.extent(o, p.axes.back(), false);
  for (int i = 0; i < o.tiles.size(); ++i)
    if (tile& t = o.tiles[i]; t.row == rows.begin && t.col == cols.begin) {  // another part of its sum
      holding& both = space_.make();
      both = *t.holds;
      add(both, made);
      t.holds = &both;
      return;
    }
  o.tiles.push_back({rows.begin, cols.begin, rows.size(), cols.size(), space_.keep(std::move(made))});
}

static holding made_by(const fact& f, int index, const std::vector<operand>& ports, cell& c,
                       const attributes& with) {
  switch (f.equations[static_cast<std::size_t>(index)].is) {
    case equation::kind::sum:
      return c.sum(index, ports, with);
    case equation::kind::merge:
      return c.merge(index, with);
    default:
      return c.function(index, ports, with);
  }
}

void transfer::each_cell(const fact& f, std::vector<operand>& ports, cell& c, const attributes& with) {
  const std::vector<letter_cuts> along = cuts(f, ports);
  for (const equation& e : f.equations) check_divisible(f, e, along);
  std::vector<std::size_t> at(along.size(), 0);
  for (bool more = true; more;) {
    for (std::size_t k = 0; k < along.size(); ++k)
      c.range[c.slot(along[k].letter)] = {along[k].at[at[k]], along[k].at[at[k] + 1]};
    c.bind(ports, with);
    attributes own = with;
    if (f.listed) own.seq = c.listed_positions();
    for (std::size_t e = 0; e < f.equations.size(); ++e) {
      put(f, f.equations[e], ports, c, made_by(f, static_cast<int>(e), ports, c, own));
    }
    more = false;
    for (std::size_t k = 0; k < along.size() && !more; ++k) {
      more = ++at[k] + 1 < along[k].at.size();
      if (!more) at[k] = 0;
    }
  }
}

void transfer::call(const equation& e, std::vector<operand>& ports, const attributes& with) {
  const fact& g = facts()[static_cast<std::size_t>(e.row)];
  std::vector<operand> inner(g.names.size());
  for (std::size_t i = 0; i < e.results.size(); ++i) inner[i] = ports[static_cast<std::size_t>(e.results[i])];
  for (std::size_t i = 0; i < e.operands.size(); ++i)
    inner[static_cast<std::size_t>(g.results) + i] = ports[static_cast<std::size_t>(e.operands[i])];
  apply(g, inner, with);
  for (std::size_t i = 0; i < e.results.size(); ++i)
    ports[static_cast<std::size_t>(e.results[i])] = std::move(inner[i]);
}

void transfer::multiply(const fact& f, const equation& e, std::vector<operand>& ports,
                        const attributes& with) {
  operand& result = ports[static_cast<std::size_t>(e.results[0])];
  const operand& given = ports[static_cast<std::size_t>(e.operands[0])];
  if (f.number && !std::isfinite(with.number))
    throw refusal("RC7686: the op multiplies by {}; expected a finite number", with.number);
  const double factor = f.number ? with.number : 1;
  for (int i = 0; i < given.tiles.size(); ++i) {
    tile t = given.tiles[i];
    if (factor != 1) {
      holding& h = space_.make();
      h = *t.holds;
      if (!h.unfinished().empty())
        throw refusal("RC7687: {} over only some of its elements is multiplied; merge its parts first",
                      h.unfinished());
      for (int k = 0; k < h.sum.size(); ++k) h.sum[k].of = factor * h.sum[k].of;
      if (const term of = h.closed(); !of.is_zero() && !model_.has(of))
        throw refusal("RC7691: the op computes {} times {}, which the model does not compute anywhere",
                      factor, model_.name(t.holds->closed()));
      t.holds = &h;
    }
    result.tiles.push_back(t);
  }
}

/// Checks fp8 tensors with one scale. The scale follows from the largest element, so slots that no token
/// fills must not be in such a tensor.
static void check_one_scale(const fact& f, const std::vector<operand>& ports) {
  const std::string& type = f.ports[0].holds;
  if (!f.ports[0].is_fp8() || type == "e4m3_rows") return;
  for (std::size_t i = static_cast<std::size_t>(f.results); i < f.ports.size(); ++i)
    for (int t = 0; t < ports[i].tiles.size(); ++t)
      if (const few<part, 2>& box = ports[i].tiles[t].holds->box; box.size() == 2 && box[0].is_arranged())
        throw refusal(
            "RC7742: the op rounds expert slots to {} with one scale for all of them; expected rows "
            "of tokens, or a scale for each row",
            type);
}

void transfer::apply(const fact& f, std::vector<operand>& ports, const attributes& with) {
  check_one_scale(f, ports);
  for (std::size_t i = f.ports.size(); i < f.names.size(); ++i) ports[i].ndim = -1;
  if (f.equations[0].is == equation::kind::call) {
    for (const equation& e : f.equations) call(e, ports, with);
    return;
  }
  if (f.equations[0].is == equation::kind::zero) {
    operand& o = ports[0];
    holding& zeros = space_.make();
    zeros.any = true;
    o.tiles.push_back({0, 0, o.rows, o.cols, &zeros});
    return;
  }
  if (f.owns) return own_slots(ports, model_, space_);
  cell c(f, model_, space_);
  measure(f, ports, c);
  for (int r = 0; r < f.results; ++r)
    if (ports[static_cast<std::size_t>(r)].ndim < 0)
      shape_result(f.ports[static_cast<std::size_t>(r)], ports[static_cast<std::size_t>(r)], c);
  attributes own = with;
  for (const char letter : f.sizes) own.size(letter) = c.length[c.slot(letter)];
  if (f.equations[0].is == equation::kind::multiple) multiply(f, f.equations[0], ports, with);
  else each_cell(f, ports, c, own);
}

}  // namespace rankc::codegen::algebra
