// SPDX-License-Identifier: Apache-2.0
#include "interpret.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "collectives.hpp"

namespace rankc::codegen::algebra {

interpreter::interpreter(const program& p, const model& m, claims& c)
    : program_(p), model_(m), claims_(c), store_(p), transfer_(m, space_), waiting_(p.communicators.size()) {}

/// All ops by their place in the order.
std::vector<interpreter::op_ref> interpreter::sequence(const verdict& order) const {
  std::vector<std::size_t> begin;
  std::size_t ops = 0;
  if (order.position.size() != program_.ranks.size()) throw refusal("the order is of another program");
  for (std::size_t r = 0; r < order.position.size(); ++r) {
    if (order.position[r].size() != program_.ranks[r].ops.size()) throw refusal("the order is of another program");
    for (int p : order.position[r]) {
      if (p < 0) throw refusal("an op has no place in the order");
      if (static_cast<std::size_t>(p) + 1 >= begin.size()) begin.resize(static_cast<std::size_t>(p) + 2, 0);
      ++begin[static_cast<std::size_t>(p) + 1];
      ++ops;
    }
  }
  for (std::size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
  std::vector<op_ref> all(ops);
  for (std::size_t r = 0; r < order.position.size(); ++r)
    for (std::size_t i = 0; i < order.position[r].size(); ++i)
      all[begin[static_cast<std::size_t>(order.position[r][i])]++] = {static_cast<int>(r), static_cast<int>(i)};
  return all;
}

void interpreter::run(const verdict& order) {
  for (const op_ref r : sequence(order)) {
    try {
      step(r);
    } catch (const unknown_row&) {
      throw;
    } catch (const refusal& why) {
      const int number = program_.ranks[static_cast<std::size_t>(r.rank)].number;
      throw refusal(fmt::format("{}: {} (rank {})", at(r).name, why.what(), number < 0 ? r.rank : number));
    }
  }
  for (std::size_t c = 0; c < waiting_.size(); ++c)
    if (!waiting_[c].empty()) throw refusal(fmt::format("{}: not all of \"{}\" take part", at(waiting_[c][0]).name, program_.communicators[c].name));
  for (const auto* queues : {&sent_, &received_})
    for (const auto& [key, left] : *queues)
      if (!left.empty()) throw refusal(at(left.front()).name + ": nothing meets it");
}

void interpreter::step(op_ref r) {
  const op& o = at(r);
  switch (o.kind) {
    case op_kind::begin: return begin(o, r.rank);
    case op_kind::end: return end(o, r.rank);
    case op_kind::compute: compute(o); break;
    case op_kind::send: case op_kind::receive: return message(r);
    case op_kind::collective: return collective(r);
  }
  store_.done(o.reads);
}

void interpreter::begin(const op& o, int rank) {
  if (o.holds.size() != o.writes.size()) throw refusal("what it begins with is not said");
  for (std::size_t i = 0; i < o.writes.size(); ++i) store_.put(o.writes[i], claims_.begin(rank, o.writes[i], o.holds[i]));
}

void interpreter::end(const op& o, int rank) {
  if (o.holds.size() != o.reads.size()) throw refusal("what it leaves is not said");
  for (std::size_t i = 0; i < o.reads.size(); ++i) {
    if (!store_.has(o.reads[i])) throw refusal(fmt::format("nothing writes the {} {}", holding_names[static_cast<int>(o.holds[i].kind)], o.holds[i].name));
    claims_.end(rank, store_.at(o.reads[i]), o.holds[i]);
  }
  store_.done(o.reads);
}

// ---- kernels

/// The part of a view that is in one of its accesses, of which those before have so many elements.
segment interpreter::segment_of(const view& v, const access& a, const operand& shape, std::int64_t elements) const {
  const std::int64_t size = size_of(a.type), count = static_cast<std::int64_t>(a.end - a.begin) / size;
  const std::int64_t pitch = shape.rows > 1 ? v.stride : shape.cols;
  if (static_cast<std::int64_t>(v.offset) % size) throw refusal(fmt::format("{} begins within an element", v.port));
  segment s{{static_cast<std::int64_t>(v.offset) / size, shape.rows, shape.cols, pitch}, 0, 0};
  if (v.accesses.count > 1) {  // one after the other: of a matrix whole rows, of a vector elements
    const bool is_matrix = shape.ndim == 2;
    if (v.offset != 0 || (is_matrix && (pitch != shape.cols || count % shape.cols)) || shape.ndim == 0)
      throw refusal(fmt::format("{} is no whole rows of each of its tensors", v.port));
    s = is_matrix ? segment{{0, count / shape.cols, shape.cols, pitch}, elements / shape.cols, 0} : segment{{0, 1, count, count}, 0, elements};
  }
  if (s.at.rows < 1 || s.at.cols < 1 || s.at.cols > s.at.pitch || s.at.offset + (s.at.rows - 1) * s.at.pitch + s.at.cols > count)
    throw refusal(fmt::format("{} lies outside of what it is given", v.port));
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
      throw refusal(fmt::format("{} is given tensors that do not follow on each other", v.port));
    all.push_back(segment_of(v, a, shape, elements));
    elements += static_cast<std::int64_t>(a.end - a.begin) / size_of(a.type);
  }
  if (v.accesses.count > 1 && elements != shape.rows * shape.cols) throw refusal(fmt::format("{} is given tensors of another size", v.port));
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
  if (o.unit < 1) throw refusal(fmt::format("{} is in units of {}", v.port, o.unit));
}

void interpreter::read(const op& o, const view& v, operand& out) {
  const few<segment, 2> all = segments(o, v);
  std::int64_t known = 0;
  for (int i = 0; i < all.size(); ++i) read_tiles(store_.at(o.reads[static_cast<std::size_t>(v.accesses.first + i)]), all[i], out, space_);
  for (int i = 0; i < out.tiles.size(); ++i) known += out.tiles[i].rows * out.tiles[i].cols;
  if (known != out.rows * out.cols)
    throw refusal(fmt::format("{} elements of {} are read that nothing is known to have written", out.rows * out.cols - known, v.port));
}

void interpreter::compute(const op& o) {
  if (o.row.empty()) {
    if (!o.reads.empty() || !o.writes.empty()) throw refusal("it is of no row");
    return;
  }
  if (o.row == "sum_squares") return sum_squares(o);
  if (o.row == "adamw") return update(o);
  kernel(o, fact_of(o.row));
}

const fact& interpreter::fact_of(std::string_view row) {
  for (const auto& [name, at] : rows_)
    if (name.data() == row.data() && name.size() == row.size()) return facts()[static_cast<std::size_t>(at)];
  const int at = find_fact(row);
  if (at < 0) throw unknown_row(row);
  rows_.emplace_back(row, at);
  return facts()[static_cast<std::size_t>(at)];
}

void interpreter::kernel(const op& o, const fact& f) {
  if (o.views.size() != f.ports.size()) throw refusal(fmt::format("it is given {} operands; expected {}", o.views.size(), f.ports.size()));
  for (std::size_t i = 0; i < o.views.size(); ++i)
    if (o.views[i].port != f.ports[i].name || o.views[i].written != (i < static_cast<std::size_t>(f.results)))
      throw refusal(fmt::format("it is given {} for {}", o.views[i].port, f.ports[i].name));
  check_layout(o, f);
  space_.clear();
  if (ports_.size() < f.names.size()) ports_.resize(f.names.size());
  for (std::size_t i = f.ports.size(); i < f.names.size(); ++i) ports_[i].clear();
  for (std::size_t i = 0; i < o.views.size(); ++i) {
    ports_[i].clear();
    shape(o.views[i], ports_[i]);
    if (o.views[i].written) continue;
    view given = o.views[i];
    if (is_rotary(f.ports[i])) given.stride = given.shape[1];
    read(o, given, ports_[i]);
  }
  transfer_.apply(f, ports_, {o.rows, o.seq, o.number, {}});
  for (std::size_t w = 0; w < o.writes.size(); ++w) write(o, static_cast<int>(w));
}

/// What a write leaves in its buffer: what the op's views put there, and the rest as it was.
void interpreter::write(const op& o, int index) {
  const access& a = o.writes[static_cast<std::size_t>(index)];
  const access* before = a.replaces >= 0 ? &o.reads.at(static_cast<std::size_t>(a.replaces)) : nullptr;
  content made{a.end - a.begin, a.type, {}};
  bool keeps = before != nullptr;  // what was there
  for (std::size_t i = 0; i < o.views.size(); ++i) {
    const view& v = o.views[i];
    if (!v.written || index < v.accesses.first || index >= v.accesses.first + v.accesses.count) continue;
    const segment s = segments(o, v)[index - v.accesses.first];
    if (keeps && static_cast<std::size_t>(s.at.rows * s.at.cols * size_of(a.type)) != made.bytes) made = store_.at(*before);
    keeps = false;
    if (v.adds) {
      if (!before) throw refusal(fmt::format("{} is added to what the op does not read", v.port));
      operand sum = ports_[i];
      add_before(*before, s, sum);
      write_tiles(made, s, sum);
    } else {
      write_tiles(made, s, ports_[i]);
    }
  }
  store_.put(a, std::move(made));
}

/// The tiles of a segment, and what was there, are added.
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
  if (known != s.at.rows * s.at.cols) throw refusal("it is added to what nothing is known to have written");
  made.tiles = sums;
}

void interpreter::sum_squares(const op& o) {
  if (o.writes.size() != 1 || o.views.empty() || !o.views.back().written) throw refusal("it writes no norm");
  std::vector<const content*> gradients;
  for (const view& v : o.views)
    if (!v.written) gradients.push_back(&whole(o, v));
  const access& norm = o.writes[0];
  const content* before = nullptr;
  if (o.views.back().adds) {
    if (norm.replaces < 0) throw refusal("the norm is added to what the op does not read");
    before = &store_.at(o.reads.at(static_cast<std::size_t>(norm.replaces)));
  }
  content made{norm.end - norm.begin, norm.type, {}};
  made.pieces.push_back({{}, claims_.sum_squares(gradients, before)});
  store_.put(norm, std::move(made));
}

/// The bytes of a view that is all of one tensor.
const access& interpreter::whole_of(const op& o, const view& v) {
  const access& a = (v.written ? o.writes : o.reads).at(static_cast<std::size_t>(v.accesses.first));
  std::int64_t elements = 1;
  for (const std::int64_t size : v.shape) elements *= size;
  if (v.accesses.count != 1 || v.offset != 0 || static_cast<std::size_t>(elements * size_of(a.type)) != a.end - a.begin)
    throw refusal(fmt::format("{} is given in part", v.port));
  return a;
}

const content& interpreter::whole(const op& o, const view& v) { return store_.at(whole_of(o, v)); }

void interpreter::update(const op& o) {
  constexpr std::string_view given[]{"weight", "gradient", "first_moment", "second_moment"};
  constexpr std::string_view made[]{"weight", "first_moment", "second_moment", "working_copy"};
  if (o.views.empty() || o.views.back().port != "norm" || o.views.back().written) throw refusal("it is given no norm");
  const content& norm = whole(o, o.views.back());
  for (std::size_t i = 0; i + 1 < o.views.size();) {
    if (o.views[i].port == "padding") {
      const content& c = whole(o, o.views[i++]);
      if (c.pieces.size() != 1 || !c.pieces[0].holds.is_zero()) throw refusal("the padding between gradients is no zeros");
      continue;
    }
    std::vector<const content*> of;
    for (const std::string_view port : given) {
      if (i >= o.views.size() || o.views[i].written || o.views[i].port != port) throw refusal(fmt::format("it is given no {}", port));
      of.push_back(&whole(o, o.views[i++]));
    }
    std::vector<content> results = claims_.update(of);
    for (int k = 0; k < 4 && i < o.views.size() && o.views[i].written; ++k, ++i) {
      const view& v = o.views[i];
      const access& a = whole_of(o, v);
      if (v.port != made[k] || v.adds) throw refusal(fmt::format("it writes {}; expected {}", v.port, made[k]));
      content c = results[k == 3 ? 0 : static_cast<std::size_t>(k)];
      const std::size_t elements = c.bytes / static_cast<std::size_t>(size_of(c.type));
      c.type = a.type;
      c.bytes = a.end - a.begin;
      if (elements * static_cast<std::size_t>(size_of(a.type)) != c.bytes) throw refusal(fmt::format("{} is written in part", v.port));
      store_.put(a, std::move(c));
    }
  }
  claims_.check_norm(norm);
}

// ---- communication

void interpreter::message(op_ref r) {
  const op& o = at(r);
  const bool sends = o.kind == op_kind::send;
  const channel key = sends ? channel{o.communicator, r.rank, o.peer} : channel{o.communicator, o.peer, r.rank};
  auto &own = sends ? sent_[key] : received_[key], &other = sends ? received_[key] : sent_[key];
  if (other.empty()) {
    own.push_back(r);
    return;
  }
  const op_ref met = other.front();
  other.pop_front();
  meet(sends ? r : met, sends ? met : r);
}

void interpreter::meet(op_ref sent, op_ref received) {
  const op &from = at(sent), &to = at(received);
  if (from.reads.size() != 1 || to.writes.size() != 1) throw refusal("a message is of one tensor");
  const access &read = from.reads[0], &write = to.writes[0];
  const content& c = store_.at(read);
  if (from.bytes != c.bytes || to.bytes != c.bytes) throw refusal(fmt::format("it is told of {} bytes; expected {}", from.bytes, c.bytes));
  if (c.bytes != write.end - write.begin || c.type != write.type)
    throw refusal(fmt::format("{} bytes are sent, {} received", c.bytes, write.end - write.begin));
  if (read.value != write.value) store_.put(write, c);  // as a rule both sides call it by one name
  store_.done(from.reads);
}

void interpreter::collective(op_ref r) {
  const op& o = at(r);
  if (o.communicator < 0 || static_cast<std::size_t>(o.communicator) >= waiting_.size()) throw refusal("it is on no communicator");
  const communicator& group = program_.communicators[static_cast<std::size_t>(o.communicator)];
  check_layout(o);
  std::vector<op_ref>& all = waiting_[static_cast<std::size_t>(o.communicator)];
  all.push_back(r);
  if (all.size() < group.ranks.size()) return;
  std::vector<op_ref> members;
  for (int rank : group.ranks)
    for (const op_ref m : all)
      if (m.rank == rank) members.push_back(m);
  all.clear();
  if (members.size() != group.ranks.size()) throw refusal(fmt::format("not all of \"{}\" take part", group.name));
  const std::size_t count = o.reads.size();
  for (const op_ref m : members)
    if (at(m).does != o.does || at(m).reads.size() != count || at(m).writes.size() != count) throw refusal("its members do different things");
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<const content*> given;
    for (const op_ref m : members) given.push_back(&store_.at(at(m).reads[i]));
    std::vector<content> made = combine(o.does, given, group.members());
    for (std::size_t m = 0; m < members.size(); ++m) {
      const access& w = at(members[m]).writes[i];
      if (made[m].bytes != w.end - w.begin || made[m].type != w.type)
        throw refusal(fmt::format("it writes {} bytes; expected {}", w.end - w.begin, made[m].bytes));
      store_.put(w, std::move(made[m]));
    }
  }
  for (const op_ref m : members) store_.done(at(m).reads);
}

}  // namespace rankc::codegen::algebra
