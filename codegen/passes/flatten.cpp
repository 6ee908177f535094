// SPDX-License-Identifier: Apache-2.0
#include <rankc/ops/memory.hpp>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "call_sizes.hpp"
#include "contents.hpp"
#include "lanes.hpp"
#include "passes.hpp"
#include "row_attributes.hpp"
#include "input_text.hpp"
#include "roles.hpp"

namespace rankc::codegen {

flattener::flattener(const lowered& l, const pipeline_rank& r, const step& s)
    : l_(l), r_(r), step_(s), kept_{weight} {
  const std::vector<int> m = moments();
  kept_.insert(kept_.end(), m.begin(), m.end());
  if (l.has_working_copy()) kept_.push_back(working_copy);
}

std::vector<int> flattener::moments() const {
  std::vector<int> all{first_moment, second_moment};
  all.resize(static_cast<std::size_t>(l_.state().moments));
  return all;
}

std::vector<int> flattener::kept_of(const placed_parameter& p) const {
  if (p.as.trainable) return kept_;
  return {l_.has_working_copy() ? working_copy : weight};
}

static element_type element_of(dtype t) {
  if (t == dtype::f64) return element_type::f64;
  return t == dtype::f32 ? element_type::f32 : element_type::bf16;
}
element_type flattener::type_of(element_kind k) const {
  switch (k) {
    case element_kind::bytes:
      return element_type::bytes;
    case element_kind::index:
      return element_type::i32;
    case element_kind::e4m3:
      return element_type::e4m3;
    case element_kind::e5m2:
      return element_type::e5m2;
    case element_kind::e4m3_rows:
      return element_type::e4m3_rows;
    case element_kind::wide:
      return wide();
    default:
      return real();
  }
}
element_type flattener::real() const { return element_of(l_.type); }
element_type flattener::wide() const { return l_.type == dtype::bf16 ? element_type::f32 : real(); }

std::size_t flattener::begin_of(int region) const {
  const arena_plan& a = r_.arena;
  const std::size_t at[]{a.weights, a.gradients, a.first_moment, a.second_moment, a.working_copy};
  return at[region];
}
flattener::place flattener::parameter(int region, std::size_t index) const {
  const placed_parameter& p = r_.parameters[index];
  const bool is_moment = region == first_moment || region == second_moment;
  const bool is_narrow = region == working_copy || (region == weight && l_.has_bf16_weights()) ||
                         (is_moment && l_.has_bf16_moments());
  const element_type type = is_narrow ? element_type::bf16 : wide();
  const std::size_t size = is_narrow ? 2 : l_.wide_bytes();
  return {begin_of(region) + p.element * size, p.as.shard() * size, {region, static_cast<int>(index)}, type};
}
flattener::place flattener::whole(int region, const gathering::part& p) const {
  const bool is_weight = region == gathered;
  const std::size_t size = is_weight ? l_.real_bytes() : l_.wide_bytes();
  return {(is_weight ? r_.arena.gathered : r_.arena.full_gradients) + p.whole * size,
          r_.parameters[static_cast<std::size_t>(p.parameter)].as.stored() * size,
          {region, p.parameter, static_cast<int>(p.whole)},
          is_weight ? real() : wide()};
}
flattener::place flattener::arrival(const gathering::part& p) const {
  return {r_.arena.arriving + p.arriving * l_.wide_bytes(),
          r_.parameters[static_cast<std::size_t>(p.parameter)].as.shard() * l_.wide_bytes(),
          {arrived, p.parameter, static_cast<int>(p.arriving)},
          wide()};
}
flattener::place flattener::scalar(int what, std::size_t at) const {
  return {at, l_.wide_bytes(), {what}, wide()};
}

access flattener::read(const place& p) const {
  const auto known = current_.find(p.what);
  if (known == current_.end()) throw std::logic_error("an op reads what nothing has written");
  return {p.begin, p.begin + p.bytes, known->second, p.type};
}
access flattener::write(const place& p) {
  current_[p.what] = next_value_;
  return {p.begin, p.begin + p.bytes, next_value_++, p.type};
}

flattener::place flattener::of_microbatch(const placed_value& v) const {
  return {v.where,
          v.bytes,
          {microbatch_value, static_cast<int>(v.what), v.stage, v.microbatch, v.layer, 0},
          real()};
}

/// The rows of a value between layers (`offset` 0), or the carried value `offset` bytes behind them.
flattener::place flattener::handed(place all, std::size_t offset, std::size_t bytes) const {
  all.begin += offset;
  all.bytes = bytes;
  all.what.back() += offset > 0;
  if (offset > 0) all.type = wide();
  return all;
}
std::vector<flattener::place> flattener::parts_of(const placed_value& v) const {
  const place all = of_microbatch(v);
  if (v.carried == 0) return {all};
  return {handed(all, 0, v.bytes - v.carried), handed(all, v.bytes - v.carried, v.carried)};
}

/// The place of an argument of a layer's function.
flattener::place flattener::locate(const item& i, const layer_call& call, const actual& a) const {
  const stage_plan& s = r_.stages[i.stage];
  switch (a.from) {
    case source::slot:
      return of_microbatch(*step_.find(a.what, s.stage, i.microbatch, a.index));
    case source::boundary:
      return of_microbatch(*step_.find(a.what, s.stage + a.index, i.microbatch));
    case source::chain: {  // two buffers alternate; the layer after it names the content
      const body& b = l_.bodies[s.layers[call.layer].kind];
      const bool after = a.as == formal::dy;
      return {r_.arena.chain[a.index],
              after ? b.y_bytes : b.x_bytes,
              {chain, i.stage, i.microbatch, call.layer + after},
              real()};
    }
    case source::rank:
      return locate_of_rank(i, call, a);
    default:
      throw std::logic_error("a flag has no place");
  }
}

/// The place of an input of a microbatch.
flattener::place flattener::input(const named_input& is, int microbatch) const {
  const placed_input& in = *r_.find_input(is.name);
  const std::size_t bytes = bytes_of_input(*l_.plan, is, l_.real_bytes(), l_.wide_bytes());
  const int m = is.computed ? 0 : microbatch;
  return {in.where + static_cast<std::size_t>(m) * bytes,
          bytes,
          {step_input, static_cast<int>(&in - r_.inputs.data()), m},
          type_of_input(is, l_)};
}

/// The index of a phase's temporaries. Backward, or its first half, reads those of recomputation.
static int workspace_of(phase p) {
  if (p == phase::forward) return 0;
  return p == phase::backward_weight ? 2 : 1;
}

flattener::place flattener::locate_of_rank(const item& i, const layer_call& call, const actual& a) const {
  const arena_plan& at = r_.arena;
  const int m = i.microbatch;
  const std::size_t table = static_cast<std::size_t>(a.index);
  switch (a.as) {
    case formal::work:
      return {i.on == compute_lane ? at.work : at.work_beside,
              0,
              {temp, i.stage, m, call.layer, workspace_of(i.does)},
              real()};
    case formal::rope:
      return {at.ropes.at(table).where, at.ropes[table].bytes, {rope, a.index}, wide()};
    case formal::input:
      return input(r_.inputs.at(table).is, m);
    case formal::routers:
      return {at.routers + static_cast<std::size_t>(m) * at.routers_bytes,
              at.routers_bytes,
              {routers, m},
              wide()};
    default:
      return scalar(loss, at.loss);
  }
}

/// The place of a value of a layer.
flattener::place flattener::resolve(const item& i, const layer_call& call, int index) const {
  const layer_use& use = r_.stages[i.stage].layers[call.layer];
  const body& b = l_.bodies[use.kind];
  const value& v = b.values[index];
  const auto given = [&](formal as) { return locate(i, call, call[as]); };
  const auto parameter_of = [&](int region) {
    const std::size_t element = use.element(l_.groups[use.kind].of_parameter[v.of]);
    const group_layout::place& in = l_.gathered_groups[use.kind].of_parameter[v.of];
    for (std::size_t j = 0; j < r_.parameters.size(); ++j)
      if (r_.parameters[j].element == element) {
        if (region < gathered) return parameter(region, j);
        return whole(region, {static_cast<int>(j), region == gathered ? use.gathered(in) : use.summed(in)});
      }
    throw std::logic_error("a layer's parameter has no place");
  };
  const auto is_shared_out = [&] { return b.parameters[static_cast<std::size_t>(v.of)].shards > 1; };
  const auto part_of = [&](place whole) {  // of the saved values or of the workspace
    whole.begin += v.offset;
    whole.bytes = v.bytes;
    whole.what.back() = index;
    whole.type = type_of(v.holds);
    return whole;
  };
  switch (v.where) {
    case space::weight:
      if (is_shared_out()) return parameter_of(gathered);
      return parameter_of(l_.has_working_copy() ? working_copy : weight);
    case space::gradient:
      return parameter_of(is_shared_out() ? full_gradient : gradient);
    case space::rope:
      return locate(i, call,
                    {formal::rope, source::rank, static_cast<int>(r_.arena.find_rope(b.ropes[v.of]))});
    case space::input:
      return locate(i, call, {formal::input, source::rank, v.of});
    case space::loss:
      return given(formal::loss);
    case space::routers:
      return given(formal::routers);
    case space::saved:
      return part_of(given(formal::saved));
    case space::halfway:
      return part_of(given(formal::halfway));
    case space::temp:
      return part_of(given(formal::work));
    case space::x:
      return handed(given(formal::x), v.offset, v.bytes);
    case space::y:
      return handed(given(formal::y), v.offset, v.bytes);
    case space::dy:
      return handed(given(formal::dy), v.offset, v.bytes);
    case space::dx:
      return handed(given(formal::dx), v.offset, v.bytes);
  }
  throw std::logic_error("an operand without a place");
}

bool adds(const item& i, const layer_call& call, const body& b, const node& n) {
  if (n.accumulate != accumulation::after_first) return n.accumulate == accumulation::add;
  const source flag = call.flag(find_flag(b, n)).from;
  return flag == source::always || !(flag == source::adds_kept ? i.first_kept : i.first);
}

void flattener::set_replaced(access& written, const op& o, const std::vector<int>& candidates) {
  for (int r : candidates)
    if (o.reads[r].begin == written.begin && o.reads[r].end == written.end) written.replaces = r;
}

/// The reads that a write may overwrite in place according to the row, as indices into `reads`.
static std::vector<int> replaced_by(const node& n, const operand& out, const std::vector<operand>& writes,
                                    const std::vector<operand>& reads) {
  std::vector<int> all;
  for (const auto& [to, from] : rankc::lowering::may_replace(n)) {
    const auto is_port = [](int port) { return [port](const operand& o) { return o.port == port; }; };
    const operand& written = *std::find_if(writes.begin(), writes.end(), is_port(to));
    if (written.at.value == out.at.value)
      all.push_back(
          static_cast<int>(std::find_if(reads.begin(), reads.end(), is_port(from)) - reads.begin()));
  }
  return all;
}

/// The arguments of a node's kernel, port by port. `outs`: the values that it writes, each once. `added`:
/// true for those that it adds to. In a dim that is sharded over tp, or over ep, `first` is the offset of
/// rank 1: the length of its part. For cp, `next_first` has it.
static std::vector<view> views_of(const body& b, const node& n, const std::vector<operand>& writes,
                                  const std::vector<operand>& reads, const std::vector<const operand*>& outs,
                                  const std::vector<bool>& added) {
  std::vector<view> all;
  for (std::size_t p = 0; p < n.ports.size(); ++p) {
    const port& of = n.row->ports[p];
    if (of.as == use::scratch) continue;
    view v{.port = of.name, .written = of.is_written(), .offset = n.ports[p].at.offset};
    const std::vector<operand>& side = v.written ? writes : reads;
    const auto is_port = [&](const operand& o) { return o.port == static_cast<int>(p); };
    const auto first = std::find_if(side.begin(), side.end(), is_port);
    v.accesses = {static_cast<int>(first - side.begin()),
                  static_cast<int>(std::count_if(first, side.end(), is_port))};
    if (v.written) {
      const auto same = [&](const operand* o) { return o->at.value == first->at.value; };
      v.accesses.first = static_cast<int>(std::find_if(outs.begin(), outs.end(), same) - outs.begin());
      v.adds = added[static_cast<std::size_t>(v.accesses.first)];
    }
    if (n.ports[p].shape >= 0) {
      const local_shape& s = b.shape(n.ports[p]);
      for (int d = 0; d < s.ndim; ++d) {
        v.shape.push_back(s.dims[d].width());
        if (d < of.shape.ndim && !of.shape.dim[d].unit.empty()) v.unit = s.dims[d].unit;
        if (d >= of.shape.ndim || of.shape.dim[d].first.empty()) continue;
        v.of_experts = s.dims[d].over.has(axis::ep);
        if (s.dims[d].over.has(region_axis) || v.of_experts) v.first = s.dims[d].width();
        const bool of_groups = s.dims[d].over.has(axis::ring);
        if (s.dims[d].over.has(axis::cp) || of_groups)
          v.next_first =
              s.dims[d].width() * (s.dims[d].over.has(region_axis) ? region_ranks(b.setting.dims) : 1);
        if (of_groups) v.alike = b.setting.dims.ulysses;
      }
      if (s.ndim > 1) v.stride = s.stride.width();
    }
    all.push_back(std::move(v));
  }
  return all;
}

/// True if a node writes only a part of a value, such as some columns of packed rows.
static bool writes_part(const body& b, const node& n, const operand& out) {
  std::int64_t elements = 0;
  n.each_write([&](const port_use& u) {
    if (u.at.value == out.at.value && u.shape >= 0) elements += b.shape(u).elements();
  });
  const value& v = b.at(out);
  const bool is_own = v.where == space::temp || v.where == space::saved || v.where == space::halfway;
  return is_own && elements > 0 && elements < b.shape(v).elements();
}

static collective_kind kind_of(conversion c) {
  switch (c) {
    case conversion::all_reduce_max:
      return collective_kind::all_reduce_max;
    case conversion::all_gather:
      return collective_kind::all_gather;
    case conversion::reduce_scatter:
      return collective_kind::reduce_scatter;
    case conversion::all_to_all:
      return collective_kind::all_to_all;
    case conversion::shift:
      return collective_kind::shift;
    case conversion::shift_back:
      return collective_kind::shift_back;
    case conversion::to_experts:
      return collective_kind::to_experts;
    case conversion::from_experts:
      return collective_kind::from_experts;
    case conversion::share_offsets:
      return collective_kind::share_offsets;
    case conversion::gather_offsets:
      return collective_kind::gather_offsets;
    default:
      return collective_kind::all_reduce;
  }
}

static void set_attributes(op& o, const node& n, const kernel_row& kernel) {
  if (records_sequences(*n.row)) {
    o.rows = n.rows;
    o.seq = n.seq;
  }
  if (kernel.takes("number") || kernel.takes("cp")) o.number = n.number;
  o.attention = n.attention;
}

std::vector<double> flattener::given(const body& b, const node& n) {
  const auto [known, fresh] = symbols_.try_emplace(n.row);
  if (fresh) known->second = numbers_of(*n.row, b.setting.to);
  std::vector<double> all;
  for (const std::string& symbol : known->second)
    all.push_back(symbol == "number" ? n.number : static_cast<double>(size_of(b, n, symbol).value));
  if (!n.attention.is_plain())
    for (const double number : n.attention.numbers()) all.push_back(number);
  return all;
}

op flattener::layer_op(const item& i, const layer_call& call, const node& n) {
  const layer_use& use = r_.stages[i.stage].layers[call.layer];
  const body& b = l_.bodies[use.kind];
  const std::string function(b.function(n));
  const bool maximum = n.row->converts == conversion::all_reduce_max;
  const std::vector<operand> writes = writes_of(b, n), reads = reads_of(b, n);
  const auto find = [&](const operand& a) { return resolve(i, call, a.at.value); };
  op o;
  o.name = i.name + ": " + use.name + ": " + function;
  o.function = function + (maximum ? "_max" : "");
  const auto take = [&](const operand& taken) {
    if (!taken.implied) o.operands.push_back(find(taken).begin + taken.at.offset);
  };
  for (const operand& out : writes) take(out);
  if (function != "all_reduce")
    for (const operand& in : reads) take(in);
  for (const operand& in : reads) o.reads.push_back(read(find(in)));
  std::vector<const operand*> outs;  // the outputs in one packed buffer are one value
  for (const operand& out : writes) {
    const auto same = [&](const operand* other) { return other->at.value == out.at.value; };
    if (std::none_of(outs.begin(), outs.end(), same)) outs.push_back(&out);
  }
  const auto is_sum = [&](const operand* out) {
    return b.at(*out).where == space::gradient || b.at(*out).where == space::loss;
  };
  const bool has_sum = std::any_of(outs.begin(), outs.end(), is_sum);
  std::vector<std::vector<int>> replaced;
  std::vector<bool> added;
  for (const operand* out : outs) {
    replaced.push_back(replaced_by(n, *out, writes, reads));
    added.push_back((is_sum(out) || !has_sum) &&
                    adds(i, call, b, n));  // next to a sum, other results are overwritten
    const place whole = find(*out);
    const bool keeps = replaced.back().empty() && writes_part(b, n, *out) &&
                       current_.count(whole.what);  // keeps what other nodes wrote
    if (!added.back() && !keeps) continue;
    replaced.back().push_back(static_cast<int>(o.reads.size()));
    o.reads.push_back(read(whole));
  }
  for (std::size_t k = 0; k < outs.size(); ++k) {
    o.writes.push_back(write(find(*outs[k])));
    set_replaced(o.writes.back(), o, replaced[k]);
  }
  o.views = views_of(b, n, writes, reads, outs, added);
  if (n.row->communicates()) {
    o.kind = op_kind::collective;
    o.name = b.message(n);
    o.bytes = b.message_bytes(n);
    o.communicator = find_link(r_, lane_of(r_.lanes, n, i.on), role_over(n.over));
    o.message = l_.find_message(o.name);
    o.does = kind_of(n.row->converts);
    o.rows = n.slab;
    o.seq = n.seq;
    o.by_rows = n.by_rows;
  } else {
    o.row = n.row->name;
    set_attributes(o, n, kernel_of(*n.row, b.setting.to));
    if (!n.is(ops::clear)) o.given = given(b, n);
  }
  return o;
}

void flattener::layer_ops(const item& i, int layer, std::vector<op>& out) {
  const stage_plan& s = r_.stages[i.stage];
  const body& b = l_.bodies[s.layers[layer].kind];
  for (const phase p : phases_of(s, i, layer)) {
    const layer_call& call = s.calls[static_cast<int>(p)][layer];
    // Indices of the last op on the item's lane, of the last ring message, and of the message that the next
    // op on the item's lane waits for.
    int own = before_item, message = -1, arrived = -1;
    for (std::size_t k = 0; k < out.size(); ++k)
      if (out[k].stream == i.on) own = static_cast<int>(k);
    for (const node& n : b.calls(p)) {
      if (!n.runs_in(&step_ == &r_.train) || (n.is(ops::clear) && adds(i, call, b, n))) continue;
      op o = layer_op(i, call, n);
      o.stream = lane_of(r_.lanes, n, i.on);
      const int index = static_cast<int>(out.size());
      op& first = n.by_rows > 0 ? out.end()[-n.by_rows] : o;                   // of a row-pipelined pair
      if (n.by_rows > 0 && !n.row->communicates()) first.by_rows = n.by_rows;  // the all_gather before it
      if (n.joins) arrived = message;
      if (o.stream != i.on) {
        o.waits.push_back(own);
        if (arrived >= 0) o.waits.push_back(arrived);
        message = index;
      } else {
        own = index;
        if (arrived >= 0) first.waits.push_back(std::exchange(arrived, -1));
      }
      out.push_back(std::move(o));
    }
  }
}

}  // namespace rankc::codegen
