// SPDX-License-Identifier: Apache-2.0
#include <rankc/codegen/intervals.hpp>
#include <rankc/ops/memory.hpp>

#include <algorithm>
#include <stdexcept>

#include "buffers.hpp"
#include "contents.hpp"
#include "lanes.hpp"

namespace rankc::codegen {

expander::expander(const lowered& l, const pipeline_rank& r)
    : l_(l), r_(r), kept_{weight} {
  if (l.trains()) kept_.insert(kept_.end(), {first_moment, second_moment});
  if (l.has_working_copy()) kept_.push_back(working_copy);
}

static element_type element_of(dtype t) {
  return t == dtype::f64 ? element_type::f64 : t == dtype::f32 ? element_type::f32 : element_type::bf16;
}
element_type expander::real() const { return element_of(l_.type); }
element_type expander::wide() const { return l_.type == dtype::bf16 ? element_type::f32 : real(); }

expander::place expander::parameter(int region, std::size_t index) const {
  const placed_parameter& p = r_.parameters[index];
  const std::size_t at[]{r_.arena.weights, r_.arena.gradients, r_.arena.first_moment, r_.arena.second_moment, r_.arena.working_copy};
  const std::size_t size = region == working_copy ? l_.real_bytes() : l_.wide_bytes();
  const element_type type = region == working_copy ? real() : wide();
  return {at[region] + p.element * size, p.as.elements() * size, {region, static_cast<int>(index)}, type};
}
expander::place expander::scalar(int what, std::size_t at) const { return {at, l_.wide_bytes(), {what}, wide()}; }

access expander::read(const place& p) const {
  const auto known = current_.find(p.what);
  if (known == current_.end()) throw std::logic_error("an op reads what nothing has written");
  return {p.begin, p.begin + p.bytes, known->second, p.type};
}
access expander::write(const place& p) {
  current_[p.what] = next_value_;
  return {p.begin, p.begin + p.bytes, next_value_++, p.type};
}

expander::place expander::resolve(const item& i, int layer, const operand& o) const {
  const stage_plan& s = r_.stages[i.stage];
  const layer_use& use = s.layers[layer];
  const body& b = l_.bodies[use.kind];
  const arena_plan& a = r_.arena;
  const int m = i.microbatch, last = static_cast<int>(s.layers.size()) - 1;
  const std::size_t slot = a.slots + s.slots[i.slot];
  const std::size_t ids = static_cast<std::size_t>(l_.plan->rows) * l_.plan->recipe.seq * sizeof(std::int32_t);
  auto parameter_of = [&](int region) {
    const group_layout::place& p = l_.groups[use.kind].of_parameter[o.index];
    const std::size_t element = use.base[static_cast<int>(p.in)] + p.offset;
    for (std::size_t j = 0; j < r_.parameters.size(); ++j)
      if (r_.parameters[j].element == element) return parameter(region, j);
    throw std::logic_error("a layer's parameter has no place");
  };
  const auto type_of = [&](int index) {
    const std::optional<dtype> type = b.buffers[index].type;
    return type ? element_of(*type) : element_type::bytes;
  };
  // What goes from stage to stage is named by the stage that it comes to, or whose gradient it is.
  auto between = [&](bool gradient, int stage, int index) -> place {
    return {a.boundaries + aligned(a.boundary_bytes) * index, boundary_bytes(l_, r_, stage), {boundary, gradient, stage, m}, real()};
  };
  switch (o.where) {
    case space::weight: return parameter_of(l_.has_working_copy() ? working_copy : weight);
    case space::gradient: return parameter_of(gradient);
    case space::rope: {
      const std::size_t j = a.find_rope(b.ropes[o.index]);
      return {a.ropes.at(j).where, a.ropes[j].bytes, {rope, static_cast<int>(j)}, wide()};
    }
    case space::tokens: return {a.tokens + m * ids, ids, {tokens, m}, element_type::i32};
    case space::targets: return {a.targets + m * ids, ids, {targets, m}, element_type::i32};
    case space::loss: return scalar(loss, a.loss);
    case space::saved:
      return {slot + use.saved + b.buffers[o.index].offset, b.buffers[o.index].bytes,
              {saved, i.stage, m, layer, o.index}, type_of(o.index)};
    case space::temp:
      return {(i.on == compute_lane ? a.work : a.work_beside) + b.buffers[o.index].offset, b.buffers[o.index].bytes,
              {temp, i.stage, m, layer * 4 + static_cast<int>(i.does), o.index}, type_of(o.index)};
    case space::x:
      if (layer == 0) return between(false, s.stage, i.x);
      return {slot + s.layers[layer - 1].output, b.x_bytes, {hidden, i.stage, m, layer - 1}, real()};
    case space::y:
      if (layer == last) return between(false, s.stage + 1, i.y);
      return {slot + use.output, b.y_bytes, {hidden, i.stage, m, layer}, real()};
    case space::dy:
      if (layer == last) return between(true, s.stage + 1, i.dy);
      return {l_.splits_backward() ? slot + use.output_gradient : a.chain[layer % 2], b.y_bytes, {chain, i.stage, m, layer + 1}, real()};
    case space::dx:
      if (layer == 0) return between(true, s.stage, i.dx);
      return {l_.splits_backward() ? slot + s.layers[layer - 1].output_gradient : a.chain[(layer - 1) % 2], b.x_bytes,
              {chain, i.stage, m, layer}, real()};
  }
  throw std::logic_error("an operand without a place");
}

/// Whether a call adds to a gradient or to the loss, or overwrites it.
static bool adds(const item& i, const layer_use& use, const body& b, const kernel& k, const operand& out) {
  const bool shared = out.where == space::gradient && b.parameters[out.index].shared && use.adds_to_shared;
  return k.accumulate == accumulation::add || (k.accumulate == accumulation::after_first && (!i.first || shared));
}

void expander::set_replaced(access& written, const op& o, const std::vector<int>& candidates) {
  for (int r : candidates)
    if (o.reads[r].begin == written.begin && o.reads[r].end == written.end) written.replaces = r;
}

op expander::layer_op(const item& i, int layer, const kernel& k) {
  const layer_use& use = r_.stages[i.stage].layers[layer];
  op o;
  o.name = i.name + ": " + use.name + ": " + k.function;
  o.function = k.function + (k.collective_ && k.collective_->maximum ? "_max" : "");
  const auto take = [&](const operand& taken) {
    if (!taken.implied) o.operands.push_back(resolve(i, layer, taken).begin + taken.offset);
  };
  for (const operand& out : k.writes) take(out);
  if (k.function != "all_reduce") for (const operand& in : k.reads) take(in);
  for (const operand& in : k.reads) o.reads.push_back(read(resolve(i, layer, in)));
  std::vector<const operand*> outs;  // parts of one packed buffer are one content
  for (const operand& out : k.writes) {
    const auto same = [&](const operand* other) { return other->where == out.where && other->index == out.index; };
    if (std::none_of(outs.begin(), outs.end(), same)) outs.push_back(&out);
  }
  const auto is_sum = [](const operand* out) { return out->where == space::gradient || out->where == space::loss; };
  const bool has_sum = std::any_of(outs.begin(), outs.end(), is_sum);
  std::vector<std::vector<int>> replaced(outs.size());  // the reads that each output may be made over
  for (std::size_t n = 0; n < outs.size(); ++n) {
    const operand* out = outs[n];
    for (const auto& [w, r] : k.in_place)
      if (k.writes[w].where == out->where && k.writes[w].index == out->index) replaced[n].push_back(r);
    const bool sums = is_sum(out) || !has_sum;  // beside a sum, other results are written afresh
    if (!sums || !adds(i, use, l_.bodies[use.kind], k, *out)) continue;
    replaced[n].push_back(static_cast<int>(o.reads.size()));
    o.reads.push_back(read(resolve(i, layer, *out)));
  }
  for (std::size_t n = 0; n < outs.size(); ++n) {
    o.writes.push_back(write(resolve(i, layer, *outs[n])));
    set_replaced(o.writes.back(), o, replaced[n]);
  }
  if (k.collective_) {
    o.kind = op_kind::collective;
    o.name = k.collective_->name;
    o.bytes = k.collective_->bytes;
    o.communicator = find_link(r_, i.on, k.collective_->over);
    o.message = l_.find_message(o.name);
    o.does = k.function == "all_gather"       ? collective_kind::all_gather
             : k.function == "reduce_scatter" ? collective_kind::reduce_scatter
             : k.collective_->maximum         ? collective_kind::all_reduce_max
                                              : collective_kind::all_reduce;
  }
  return o;
}

void expander::layer_ops(const item& i, int layer, std::vector<op>& out) {
  const layer_use& use = r_.stages[i.stage].layers[layer];
  const body& b = l_.bodies[use.kind];
  for (const kernel& k : b.calls(i.does))
    if (k.row != &ops::clear || !adds(i, use, b, k, k.writes[0])) out.push_back(layer_op(i, layer, k));
}

/// Whether an element is in one of the ranges.
static bool covers(const std::vector<range>& over, std::size_t element) {
  return std::any_of(over.begin(), over.end(), [&](const range& g) { return element >= g.first && element < g.first + g.count; });
}

op expander::on_ranges(std::string name, const std::vector<range>& over, const std::vector<int>& reads,
                       const std::vector<int>& writes) {
  op o;
  o.name = std::move(name);
  for (std::size_t p = 0; p < r_.parameters.size(); ++p) {
    if (!covers(over, r_.parameters[p].element)) continue;
    std::vector<int> candidates;
    for (int region : reads) {
      candidates.push_back(static_cast<int>(o.reads.size()));
      o.reads.push_back(read(parameter(region, p)));
    }
    for (int region : writes) {
      o.writes.push_back(write(parameter(region, p)));
      set_replaced(o.writes.back(), o, candidates);
    }
  }
  return o;
}

std::vector<expander::place> expander::paddings(const bucket& b) const {
  std::vector<range> held;
  for (const placed_parameter& p : r_.parameters)
    if (p.element >= b.first && p.element < b.first + b.count) held.push_back({p.element, p.as.elements(), false});
  std::sort(held.begin(), held.end(), [](const range& x, const range& y) { return x.first < y.first; });
  held.push_back({b.first + b.count, 0, false});
  std::vector<place> between;
  std::size_t at = b.first;
  for (const range& h : held) {
    if (h.first > at)
      between.push_back({r_.arena.gradients + at * l_.wide_bytes(), (h.first - at) * l_.wide_bytes(),
                         {padding, static_cast<int>(at)}, wide()});
    at = h.first + h.count;
  }
  return between;
}

void expander::read_paddings(op& o, const std::vector<range>& over) {
  for (const bucket& b : r_.buckets)
    for (const place& p : paddings(b))
      if (covers(over, (p.begin - r_.arena.gradients) / l_.wide_bytes())) o.reads.push_back(read(p));
}

op expander::begin() {
  op o;
  o.kind = op_kind::begin;
  o.name = "begin";
  for (std::size_t p = 0; p < r_.parameters.size(); ++p)
    for (int region : kept_) o.writes.push_back(write(parameter(region, p)));
  for (const bucket& b : r_.buckets)
    for (const place& p : paddings(b)) o.writes.push_back(write(p));
  item i;
  i.slot = 0;
  for (std::size_t j = 0; j < r_.arena.ropes.size(); ++j)
    o.writes.push_back(write({r_.arena.ropes[j].where, r_.arena.ropes[j].bytes, {rope, static_cast<int>(j)}, wide()}));
  for (i.microbatch = 0; i.microbatch < l_.plan->actions.microbatches; ++i.microbatch) {
    if (r_.reads_tokens) o.writes.push_back(write(resolve(i, 0, {space::tokens, 0})));
    if (r_.reads_targets) o.writes.push_back(write(resolve(i, 0, {space::targets, 0})));
  }
  return o;
}

std::vector<op> expander::expand(const item& i) {
  const stage_plan& s = r_.stages[i.stage];
  std::vector<op> out;
  auto collective = [&](op o, std::size_t data) {
    o.kind = op_kind::collective;
    o.name = i.name;
    o.function = "all_reduce";
    o.operands = {data};
    o.communicator = find_link(r_, i.on, i.over);
    o.message = i.message;
    o.bytes = l_.messages[i.message].bytes;
    out.push_back(o);
  };
  switch (i.what) {
    case item_kind::forward:
      for (int layer = 0; layer < static_cast<int>(s.layers.size()); ++layer) layer_ops(i, layer, out);
      break;
    case item_kind::backward:
      for (int layer = static_cast<int>(s.layers.size()) - 1; layer >= 0; --layer) layer_ops(i, layer, out);
      break;
    case item_kind::backward_layer: layer_ops(i, i.layer, out); break;
    case item_kind::send:
    case item_kind::receive: {
      const bool sends = i.what == item_kind::send;
      const int last = static_cast<int>(s.layers.size()) - 1;
      const operand buffer{i.backward_traffic ? (sends ? space::dx : space::dy) : (sends ? space::y : space::x), 0};
      const place p = resolve(i, buffer.where == space::x || buffer.where == space::dx ? 0 : last, buffer);
      op o;
      o.kind = sends ? op_kind::send : op_kind::receive;
      o.name = i.name;
      o.function = sends ? "send" : "receive";
      o.operands = {p.begin};
      o.message = i.message;
      o.bytes = i.bytes;
      o.communicator = find_link(r_, i.on, runtime::over::peer);
      if (sends) {
        o.reads.push_back(read(p));
        sent_[i.message] = o.reads.back().value;
      } else {
        o.writes.push_back(write(p));
        received_[i.message] = o.writes.back().value;
      }
      out.push_back(o);
      break;
    }
    case item_kind::reduce: {
      const bucket& b = r_.buckets[i.bucket];
      op o = on_ranges(i.name, {{b.first, b.count, false}}, {gradient}, {gradient});
      for (const place& p : paddings(b)) {
        o.reads.push_back(read(p));
        o.writes.push_back(write(p));
        o.writes.back().replaces = static_cast<int>(o.reads.size()) - 1;
      }
      collective(o, r_.arena.gradients + b.first * l_.wide_bytes());
      break;
    }
    case item_kind::squares: {
      const std::vector<range>& ranges = i.sharded ? r_.squares_sharded : r_.squares_whole;
      op o = on_ranges(i.name, ranges, {gradient}, {});
      read_paddings(o, ranges);
      o.function = "sum_squares";
      o.operands = {r_.arena.norm, r_.arena.gradients};
      if (!i.first) o.reads.push_back(read(scalar(norm, r_.arena.norm)));
      o.writes.push_back(write(scalar(norm, r_.arena.norm)));
      if (!i.first) o.writes.back().replaces = static_cast<int>(o.reads.size()) - 1;
      out.push_back(o);
      break;
    }
    case item_kind::reduce_norm:
    case item_kind::reduce_loss: {
      const place p = i.what == item_kind::reduce_norm ? scalar(norm, r_.arena.norm) : scalar(loss, r_.arena.loss);
      op o;
      o.reads.push_back(read(p));
      o.writes.push_back(write(p));
      o.writes.back().replaces = 0;
      collective(o, p.begin);
      break;
    }
    case item_kind::update: {
      op o = on_ranges(i.name, r_.updates, {weight, gradient, first_moment, second_moment}, kept_);
      read_paddings(o, r_.updates);
      o.function = "adamw";
      o.operands = {r_.arena.weights, r_.arena.gradients, r_.arena.first_moment, r_.arena.second_moment, r_.arena.norm};
      o.reads.push_back(read(scalar(norm, r_.arena.norm)));
      out.push_back(o);
      break;
    }
  }
  if (out.empty()) out.emplace_back().name = i.name;  // half a backward of layers that have nothing for it
  for (op& o : out) o.stream = i.on;
  return out;
}

op expander::end(bool train) {
  op o;
  o.kind = op_kind::end;
  o.name = "end";
  for (std::size_t p = 0; p < r_.parameters.size(); ++p)
    for (int region : kept_) o.reads.push_back(read(parameter(region, p)));
  if (train && l_.trains()) o.reads.push_back(read(scalar(norm, r_.arena.norm)));
  if (current_.count({loss})) o.reads.push_back(read(scalar(loss, r_.arena.loss)));
  return o;
}

}  // namespace rankc::codegen
