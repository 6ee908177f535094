// SPDX-License-Identifier: Apache-2.0
// The reads and writes of a kernel, port by port.
#include "interpret.hpp"

#include <algorithm>

#include "call_numbers.hpp"
#include "collectives.hpp"
#include "unread.hpp"

namespace rankc::codegen::algebra {

/// The part of a view in one of its accesses. `elements`: the number of elements in the accesses before it.
segment interpreter::segment_of(const view& v, const access& a, const operand& shape,
                                std::int64_t elements) const {
  const std::int64_t size = size_of(a.type), count = static_cast<std::int64_t>(a.end - a.begin) / size;
  const std::int64_t pitch = shape.rows > 1 ? v.stride : shape.cols;
  check_elements(v, a);
  if (static_cast<std::int64_t>(v.offset) % size)
    throw refusal(
        "RC7550: tensor {} is at byte {} of its buffer; expected a multiple of {}, the size of an element",
        v.port, v.offset, size);
  segment s{{static_cast<std::int64_t>(v.offset) / size, shape.rows, shape.cols, pitch}, 0, 0};
  if (v.accesses.count > 1) {  // each access has whole rows of a matrix, or elements of a vector
    const bool is_matrix = shape.ndim == 2;
    if (v.offset != 0 || (is_matrix && (pitch != shape.cols || count % shape.cols)) || shape.ndim == 0)
      throw refusal("RC7551: tensor {} spans several buffers; expected complete rows in each", v.port);
    s = is_matrix ? segment{{0, count / shape.cols, shape.cols, pitch}, elements / shape.cols, 0}
                  : segment{{0, 1, count, count}, 0, elements};
  }
  if (v.offset >= a.end - a.begin || s.at.rows < 1 || s.at.cols < 1 || s.at.cols > s.at.pitch ||
      s.at.offset + (s.at.rows - 1) * s.at.pitch + s.at.cols > count)
    throw refusal("RC7552: tensor {} does not fit into the {} elements of its buffer", v.port, count);
  return s;
}

few<segment, 2> interpreter::segments(const op& o, const view& v) const {
  const std::vector<access>& accesses = v.written ? o.writes : o.reads;
  const operand shape = operand_of(v);
  few<segment, 2> all;
  std::int64_t elements = 0;
  for (const int i : v.accesses) {
    const access& a = accesses[static_cast<std::size_t>(i)];
    if (i != v.accesses.first && accesses[static_cast<std::size_t>(i) - 1].end != a.begin)
      throw refusal("RC7553: tensor {} spans several buffers; expected them to be contiguous", v.port);
    all.push_back(segment_of(v, a, shape, elements));
    elements += static_cast<std::int64_t>(a.end - a.begin) / size_of(a.type);
  }
  if (v.accesses.count > 1 && elements != shape.rows * shape.cols)
    throw refusal("RC7554: tensor {} has {} elements, and its buffers have {}", v.port,
                  shape.rows * shape.cols, elements);
  return all;
}

operand interpreter::operand_of(const view& v) {
  operand o;
  shape(v, o);
  return o;
}

void interpreter::shape(const view& v, operand& o) {
  o.ndim = static_cast<int>(v.shape.size());
  if (o.ndim == 2) o.rows = v.shape[0];
  if (o.ndim > 0) o.cols = v.shape[static_cast<std::size_t>(o.ndim) - 1];
  o.unit = v.unit;
  o.first = v.first;
  if (o.unit < 1)
    throw refusal("RC7555: tensor {} has units of {} elements; expected at least 1", v.port, o.unit);
}

void interpreter::read(const op& o, const view& v, operand& out) {
  const few<segment, 2> all = segments(o, v);
  std::int64_t known = 0;
  for (int i = 0; i < all.size(); ++i)
    read_tiles(store_.at(o.reads[static_cast<std::size_t>(v.accesses.first + i)]), all[i], out, space_);
  for (int i = 0; i < out.tiles.size(); ++i) known += out.tiles[i].rows * out.tiles[i].cols;
  if (known != out.rows * out.cols)
    throw refusal("RC7556: nothing has written {} of the {} elements of operand {}",
                  out.rows * out.cols - known, out.rows * out.cols, v.port);
}

namespace {

/// Whether a view has all elements of its accesses, and these are contiguous.
bool is_all(const op& o, const view& v) {
  const std::vector<access>& accesses = v.written ? o.writes : o.reads;
  const access& first = accesses[static_cast<std::size_t>(v.accesses.first)];
  std::size_t end = first.begin, elements = 1;
  for (const int i : v.accesses) {
    const access& a = accesses[static_cast<std::size_t>(i)];
    check_elements(v, a);
    if (a.begin != end || a.type != first.type) return false;
    end = a.end;
  }
  for (const std::int64_t size : v.shape) elements *= static_cast<std::size_t>(size);
  return v.offset == 0 && !v.adds &&
         elements * static_cast<std::size_t>(size_of(first.type)) == end - first.begin;
}

/// Adds the pieces of two buffers. Returns false where their places differ.
bool add_pieces(content& to, const content& more) {
  if (to.bytes != more.bytes || to.type != more.type) return false;
  if (is_zeros(more)) return true;
  if (is_zeros(to)) {
    to = more;
    return true;
  }
  if (to.pieces.size() != more.pieces.size()) return false;
  for (int i = 0; i < to.pieces.size(); ++i) {
    int k = 0;
    while (k < more.pieces.size() && !(more.pieces[k].at == to.pieces[i].at)) ++k;
    if (k == more.pieces.size()) return false;
    add(to.pieces[i].holds, more.pieces[k].holds);
  }
  return true;
}

}  // namespace

/// Adds tensors element by element if they have the same layout. They may then have any dims, and several
/// accesses. Returns false where the layouts differ.
bool interpreter::add_tensors(const op& o, const fact& f) {
  const equation& e = f.equations[0];
  const bool is_sum = e.is == equation::kind::sum && f.equations.size() == 1 && e.operands.size() == 2 &&
                      e.same[0] && e.same[1];
  if (!is_sum) return false;
  const view &y = o.views[0], &a = o.views[1], &b = o.views[2];
  for (const view& v : o.views)
    if (!is_all(o, v) || !(v.shape == y.shape) || v.accesses.count != y.accesses.count) return false;
  std::vector<content> sums;
  for (std::size_t i = 0; i < y.accesses.size(); ++i) {
    const access& to = o.writes[static_cast<std::size_t>(y.accesses[i])];
    content sum = store_.at(o.reads[static_cast<std::size_t>(a.accesses[i])]);
    const bool lie_alike = add_pieces(sum, store_.at(o.reads[static_cast<std::size_t>(b.accesses[i])])) &&
                           sum.bytes == to.end - to.begin && sum.type == to.type;
    if (!lie_alike) return false;
    sums.push_back(std::move(sum));
  }
  for (std::size_t i = 0; i < sums.size(); ++i)
    put(o.writes[static_cast<std::size_t>(y.accesses[i])], std::move(sums[i]));
  return true;
}

static element_type type_of(const op& o, const view& v) {
  return (v.written ? o.writes : o.reads)[static_cast<std::size_t>(v.accesses.first)].type;
}

/// Checks that a result that is a sum over tokens has no narrower type than an operand that is one.
static void check_sums_stay_wide(const fact& f, const std::vector<operand>& ports) {
  const auto results = static_cast<std::size_t>(f.results);
  const auto holds_sum = [](const operand& o) {
    for (int t = 0; t < o.tiles.size(); ++t)
      if (o.tiles[t].holds->of_tokens) return true;
    return false;
  };
  for (std::size_t made = 0; made < results; ++made)
    for (std::size_t given = results; given < f.ports.size(); ++given) {
      const bool is_narrower = size_of(ports[made].type) < size_of(ports[given].type);
      if (is_narrower && holds_sum(ports[made]) && holds_sum(ports[given]))
        throw refusal("RC7703: result {} keeps in {} a sum over tokens that is given in {}",
                      f.ports[made].name, element_type_names[static_cast<int>(ports[made].type)],
                      element_type_names[static_cast<int>(ports[given].type)]);
    }
}

/// Checks that an op reads all places of one arrangement. A place counts the slots of all tokens that were
/// arranged together, so some of the places, or those of two arrangements, do not index the slots of these
/// tokens.
void interpreter::check_whole_places(const op& o, const fact& f) {
  for (std::size_t i = static_cast<std::size_t>(f.results); i < f.ports.size(); ++i) {
    const view& v = o.views[i];
    if (!(f.owns || f.by == static_cast<int>(i)) || v.port != "places") continue;
    const access& a = first_access(o, v);
    const std::size_t bytes = store_.at(a).bytes;
    if (v.accesses.count != 1 || v.offset != 0 || a.end - a.begin != bytes || v.shape.size() != 2 ||
        static_cast<std::size_t>(v.shape[0] * v.shape[1] * size_of(a.type)) != bytes)
      throw refusal(
          "RC7760: tensor {} is a part of the places of an arrangement, or of several; expected all of one",
          v.port);
  }
}

/// Notes whether a result is a part of the last layer's loss.
void interpreter::note_loss(const fact& f) {
  for (std::size_t r = 0; r < static_cast<std::size_t>(f.results); ++r)
    for (int t = 0; t < ports_[r].tiles.size(); ++t) {
      const few<summand, 1>& sum = ports_[r].tiles[t].holds->sum;
      for (int i = 0; i < sum.size(); ++i)
        if (sum[i].of == model_.last_loss()) claims_.note_loss(current_.rank);
    }
}

void interpreter::kernel(const op& o, const fact& f) {
  if (o.views.size() != f.ports.size())
    throw refusal("RC7557: the op is given {} tensors; expected {}", o.views.size(), f.ports.size());
  for (std::size_t i = 0; i < o.views.size(); ++i)
    if (o.views[i].port != f.ports[i].name || o.views[i].written != (i < static_cast<std::size_t>(f.results)))
      throw refusal("RC7558: the op is given tensor {} in the place of {}", o.views[i].port, f.ports[i].name);
  check_layout(o, f);
  check_unread(o, f);
  check_whole_places(o, f);
  if (f.ports[0].is_fp8()) {
    using rounding = specification::rounding;
    if (!model_.rounds(f.ports[0].holds == "e4m3_rows" ? rounding::fp8_rows : rounding::fp8))
      throw refusal("RC7559: the op rounds to {}, but the recipe does not", f.ports[0].holds);
    claims_.note_fp8();
  }
  if (add_tensors(o, f)) return check_call_numbers(o, f);
  space_.clear();
  if (ports_.size() < f.names.size()) ports_.resize(f.names.size());
  for (std::size_t i = f.ports.size(); i < f.names.size(); ++i) ports_[i].clear();
  for (std::size_t i = 0; i < o.views.size(); ++i) {
    ports_[i].clear();
    shape(o.views[i], ports_[i]);
    ports_[i].type = type_of(o, o.views[i]);
    if (o.views[i].written) continue;
    read(o, o.views[i], ports_[i]);
  }
  check_read_of_bf16(f);
  transfer_.apply(f, ports_, {.rows = o.rows, .seq = o.seq, .number = o.number, .attention = o.attention});
  note_loss(f);
  for (std::size_t i = 0; made_ && i < o.views.size(); ++i)
    if (o.views[i].written)
      made_->note(current_.rank, current_.op,
                  o.writes[static_cast<std::size_t>(o.views[i].accesses.first)].value, ports_[i]);
  for (std::size_t w = 0; w < o.writes.size(); ++w) write(o, static_cast<int>(w));
  check_sums_stay_wide(f, ports_);
  check_call_numbers(o, f);
}

refusal adds_unread(const view& v) {
  return refusal("RC7560: result {} is added to a buffer that the op does not read", v.port);
}

/// Checks that an op that adds to a buffer, or keeps a part of it, writes the type of its contents.
void check_kept_type(element_type before, element_type now, const view& v) {
  if (before != now)
    throw refusal("RC7755: result {} is in {}, and its buffer holds {}; expected one type", v.port,
                  element_type_names[static_cast<int>(now)], element_type_names[static_cast<int>(before)]);
}

/// Stores the results of the op's views in a buffer. The rest of the buffer is unchanged.
void interpreter::write(const op& o, int index) {
  const access& a = o.writes[static_cast<std::size_t>(index)];
  const access* before = a.replaces >= 0 ? &o.reads.at(static_cast<std::size_t>(a.replaces)) : nullptr;
  content made{a.end - a.begin, a.type, {}};
  bool keeps = before != nullptr;  // whether the buffer keeps earlier contents
  for (std::size_t i = 0; i < o.views.size(); ++i) {
    const view& v = o.views[i];
    if (!v.written || index < v.accesses.first || index >= v.accesses.first + v.accesses.count) continue;
    const segment s = segments(o, v)[index - v.accesses.first];
    if (keeps && static_cast<std::size_t>(s.at.rows * s.at.cols * size_of(a.type)) != made.bytes) {
      check_kept_type(store_.at(*before).type, a.type, v);
      made = store_.at(*before);
    }
    keeps = false;
    if (v.adds) {
      if (!before) throw adds_unread(v);
      check_kept_type(store_.at(*before).type, a.type, v);
      operand sum = ports_[i];
      add_before(*before, s, sum);
      write_tiles(made, s, sum);
    } else {
      write_tiles(made, s, ports_[i]);
    }
  }
  put(a, std::move(made));
}

/// Adds the earlier contents of a segment to its tiles.
void interpreter::add_before(const access& before, const segment& s, operand& made) {
  operand old = made;
  old.tiles.clear();
  read_tiles(store_.at(before), s, old, space_);
  few<tile, 2> sums;
  std::int64_t known = 0;
  for (int i = 0; i < made.tiles.size(); ++i)
    for (int k = 0; k < old.tiles.size(); ++k) {
      const tile &x = made.tiles[i], &y = old.tiles[k];
      const std::int64_t r0 = std::max(x.row, y.row), r1 = std::min(x.row + x.rows, y.row + y.rows);
      const std::int64_t c0 = std::max(x.col, y.col), c1 = std::min(x.col + x.cols, y.col + y.cols);
      if (r0 >= r1 || c0 >= c1) continue;
      const auto part = [&](const tile& t) {
        const bool is_all = t.holds->any || (t.rows == r1 - r0 && t.cols == c1 - c0);
        return is_all ? *t.holds : cut(*t.holds, r0 - t.row, r1 - r0, c0 - t.col, c1 - c0);
      };
      holding& sum = space_.make();
      sum = part(y);
      add(sum, part(x));
      sums.push_back({r0, c0, r1 - r0, c1 - c0, &sum});
      known += (r1 - r0) * (c1 - c0);
    }
  if (known != s.at.rows * s.at.cols)
    throw refusal("RC7561: the op adds to {} elements, and nothing has written {} of them",
                  s.at.rows * s.at.cols, s.at.rows * s.at.cols - known);
  made.tiles = sums;
}

}  // namespace rankc::codegen::algebra
