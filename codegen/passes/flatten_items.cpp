// SPDX-License-Identifier: Apache-2.0
// The ops of a rank other than calls of layers: messages, reductions, the norm, the optimizer. Also the begin
// and end ops, and the ops of each item.
#include <algorithm>
#include <tuple>

#include <rankc/ops/cross_entropy.hpp>
#include <rankc/rules/values/batch.hpp>

#include "contents.hpp"
#include "lanes.hpp"
#include "input_text.hpp"
#include "passes.hpp"

namespace rankc::codegen {

/// The range that contains an element; null: none.
static const range* range_of(const std::vector<range>& over, std::size_t element) {
  for (const range& g : over)
    if (element >= g.first && element < g.first + g.count) return &g;
  return nullptr;
}

/// A view of one access, as a tensor with one dim.
static view view_of(std::string_view port, bool written, std::size_t access, std::int64_t elements) {
  return {
      .port = port, .written = written, .accesses = {static_cast<int>(access), 1}, .shape = {{elements}, 1}};
}

op flattener::on_ranges(std::string name, const std::vector<range>& over, const std::vector<int>& reads,
                        const std::vector<int>& writes) {
  constexpr const char* ports[]{"weight", "gradient", "first_moment", "second_moment", "working_copy"};
  op o;
  o.name = std::move(name);
  for (std::size_t p = 0; p < r_.parameters.size(); ++p) {
    if (!range_of(over, r_.parameters[p].element)) continue;
    const auto elements = static_cast<std::int64_t>(r_.parameters[p].as.shard());
    std::vector<int> candidates;
    for (int region : reads) {
      candidates.push_back(static_cast<int>(o.reads.size()));
      const range& by = *range_of(over, r_.parameters[p].element);
      const bool stays = region == weight && !by.decay, moves = stays && by.balances.any();
      std::string_view port = ports[region];
      if (moves) port = "balanced_weight";
      else if (stays) port = "undecayed_weight";
      o.views.push_back(view_of(port, false, o.reads.size(), elements));
      if (moves) o.views.back().balances = by.balances;
      o.reads.push_back(read(parameter(region, p)));
    }
    for (int region : writes) {
      o.views.push_back(view_of(ports[region], true, o.writes.size(), elements));
      o.writes.push_back(write(parameter(region, p)));
      set_replaced(o.writes.back(), o, candidates);
    }
  }
  return o;
}

std::vector<flattener::place> flattener::paddings(const bucket& b) const {
  std::vector<range> held;
  for (const placed_parameter& p : r_.parameters)
    if (p.element >= b.first && p.element < b.first + b.count)
      held.push_back({p.element, p.as.shard(), false});
  std::sort(held.begin(), held.end(), [](const range& x, const range& y) { return x.first < y.first; });
  held.push_back({b.first + b.count, 0, false});
  std::vector<place> between;
  std::size_t at = b.first;
  for (const range& h : held) {
    if (h.first > at)
      between.push_back({r_.arena.gradients + at * l_.wide_bytes(),
                         (h.first - at) * l_.wide_bytes(),
                         {padding, static_cast<int>(at)},
                         wide()});
    at = h.first + h.count;
  }
  return between;
}

void flattener::read_paddings(op& o, const std::vector<range>& over) {
  for (const bucket& b : r_.buckets)
    for (const place& p : paddings(b))
      if (range_of(over, (p.begin - r_.arena.gradients) / l_.wide_bytes())) {
        o.views.push_back(
            view_of("padding", false, o.reads.size(), static_cast<std::int64_t>(p.bytes / l_.wide_bytes())));
        o.reads.push_back(read(p));
      }
}

static holding_kind held_kind(int region) {
  switch (region) {
    case weight:
      return holding_kind::weight;
    case first_moment:
      return holding_kind::first_moment;
    case second_moment:
      return holding_kind::second_moment;
    default:
      return holding_kind::working_copy;
  }
}

/// The part of a parameter that a region of the arena holds on rank 1 of the region axis. Along a dim that
/// the axis shards, the part begins at its own length. Its rows are those of the first shard.
static holding held(int region, const placed_parameter& p) {
  holding h{.kind = held_kind(region), .name = p.name};
  h.expert_rows = p.as.experts ? p.as.rows : 0;
  for (int d = 0; d < p.as.ndim; ++d) {
    const std::int64_t count = d == 0 ? p.as.rows : p.as.cols;
    h.box.push_back({p.as.shards_of_dim[d].ranks > 1 ? count : 0, d == 0 ? p.as.shard_rows : count});
  }
  return h;
}

/// The tokens of sequences on the first rank of cp: for each sequence one chunk from the front and one from
/// the back.
std::vector<box_range> flattener::chunks_of(std::int64_t first, std::int64_t rows, std::int64_t seq) const {
  const std::int64_t chunk = seq / (2 * l_.plan->dims.cp);
  std::vector<box_range> all;
  for (std::int64_t row = 0; row < rows; ++row) {
    all.push_back({first + row * seq, chunk});
    all.push_back({first + (row + 1) * seq - chunk, chunk});
  }
  return all;
}

std::vector<std::pair<flattener::place, holding>> flattener::kept_tensors() const {
  std::vector<std::pair<place, holding>> all;
  for (std::size_t p = 0; p < r_.parameters.size(); ++p)
    for (int region : kept_of(r_.parameters[p]))
      all.emplace_back(parameter(region, p), held(region, r_.parameters[p]));
  for (const bucket& b : r_.buckets)
    for (const place& p : paddings(b)) all.emplace_back(p, holding{holding_kind::padding});
  for (std::size_t j = 0; j < r_.arena.ropes.size(); ++j) {
    const placed_rope& r = r_.arena.ropes[j];
    all.emplace_back(place{r.where, r.bytes, {rope, static_cast<int>(j)}, wide()},
                     holding{.kind = holding_kind::rotary,
                             .box = l_.plan->dims.cp > 1 ? chunks_of(0, 1, r.as.positions * l_.plan->dims.cp)
                                                         : std::vector<box_range>{},
                             .positions = r.as.positions * l_.plan->dims.cp,
                             .dim = r.as.dim,
                             .theta = r.as.theta,
                             .scaling = r.as.scaling});
  }
  return all;
}

op flattener::begin() {
  op o;
  o.kind = op_kind::begin;
  o.name = "begin";
  const auto add = [&](const place& p, holding h) {
    o.writes.push_back(write(p));
    o.holds.push_back(std::move(h));
  };
  for (auto& [p, h] : kept_tensors()) add(p, std::move(h));
  // The tokens of a replica's microbatch, on all ranks of cp.
  const auto ids = static_cast<std::int64_t>(l_.plan->rows) * l_.plan->recipe.seq;
  item i;
  for (i.microbatch = 0; i.microbatch < l_.plan->actions.microbatches; ++i.microbatch) {
    const std::int64_t first = i.microbatch * ids * static_cast<std::int64_t>(batch_ranks(l_.plan->dims));
    const std::vector<box_range> box = l_.plan->dims.cp > 1
                                           ? chunks_of(first, l_.plan->rows, l_.plan->recipe.seq)
                                           : std::vector<box_range>{{first, ids}};
    const std::vector<box_range> whole{{first, ids}};
    const auto box_of = [&](const named_input& in) {
      const std::int64_t seq = l_.plan->recipe.seq;
      if (in.extent == input_extent::sequence)
        return std::vector<box_range>{{first / seq, l_.plan->rows / l_.plan->dims.cp}};
      if (in.extent == input_extent::step) return std::vector<box_range>{{0, in.width()}};
      return in.whole_sequences ? whole : box;
    };
    for (std::size_t k = 0; k < r_.inputs.size(); ++k) {
      const placed_input& in = r_.inputs[k];
      const std::optional<holding_kind> kind = text_of_input(in.is).held;
      if (!in.read || !kind) continue;
      add(locate(i, {}, {formal::input, source::rank, static_cast<int>(k)}),
          {.kind = *kind,
           .name = kind == holding_kind::input ? std::string(in.is.name) : "",
           .box = box_of(in.is)});
    }
  }
  return o;
}

void flattener::make_collective(op& o, const item& i, std::size_t data) const {
  o.kind = op_kind::collective;
  o.name = i.name;
  o.views.clear();
  o.function = "all_reduce";
  o.operands = {data};
  o.communicator = find_link(r_, i.on, i.over);
  o.message = i.message;
  o.bytes = l_.messages[i.message].bytes;
}

op flattener::send_or_receive(const item& i) {
  const bool sends = i.what == item_kind::send;
  const std::vector<place> parts = parts_of(step_.values[i.data]);
  op o;
  o.kind = sends ? op_kind::send : op_kind::receive;
  o.name = i.name;
  o.function = sends ? "send" : "receive";
  o.operands = {parts.front().begin};
  o.message = i.message;
  o.bytes = i.bytes;
  o.communicator = find_link(r_, i.on, runtime::over::peer);
  for (const place& p : parts) {
    (sends ? o.reads : o.writes).push_back(sends ? read(p) : write(p));
    (sends ? sent_ : received_)[i.message].push_back((sends ? o.reads : o.writes).back().value);
  }
  return o;
}

static void send_in_bf16(op& o) {
  o.in_bf16 = true;
  o.function += "_in_bf16";
}

op flattener::reduce_bucket(const item& i) {
  const bucket& b = r_.buckets[i.bucket];
  op o = on_ranges(i.name, {{b.first, b.count, false}}, {gradient}, {gradient});
  for (const place& p : paddings(b)) {
    o.reads.push_back(read(p));
    o.writes.push_back(write(p));
    o.writes.back().replaces = static_cast<int>(o.reads.size()) - 1;
  }
  make_collective(o, i, r_.arena.gradients + b.first * l_.wide_bytes());
  if (l_.rounds(i)) send_in_bf16(o);
  return o;
}

op flattener::collective_of(const item& i, collective_kind does, const access& from, const access& to) const {
  op o;
  o.kind = op_kind::collective;
  o.does = does;
  o.name = i.name;
  o.function = collective_kind_names[static_cast<int>(does)];
  o.operands = {to.begin, from.begin};
  o.reads = {from};
  o.writes = {to};
  o.communicator = find_link(r_, i.on, i.over);
  o.message = i.message;
  o.bytes = std::min(to.end - to.begin, from.end - from.begin);
  return o;
}

std::vector<op> flattener::gather(const item& i) {
  std::vector<op> all;
  for (const gathering::part& p : r_.gatherings[i.gathering].parts) {
    const access from =
        read(parameter(l_.has_working_copy() ? working_copy : weight, static_cast<std::size_t>(p.parameter)));
    all.push_back(collective_of(i, collective_kind::all_gather, from, write(whole(gathered, p))));
  }
  return all;
}

std::vector<op> flattener::reduce_scatter(const item& i) {
  std::vector<op> all;
  for (const gathering::part& p : r_.gatherings[i.gathering].trained) {
    const access from = read(whole(full_gradient, p));
    const place to = i.first ? parameter(gradient, static_cast<std::size_t>(p.parameter)) : arrival(p);
    all.push_back(collective_of(i, collective_kind::reduce_scatter, from, write(to)));
    if (l_.rounds(i)) send_in_bf16(all.back());
  }
  return all;
}

std::vector<op> flattener::add_sums(const item& i) {
  std::vector<op> all;
  for (const gathering::part& p : r_.gatherings[i.gathering].trained) {
    const layer_parameter& as = r_.parameters[static_cast<std::size_t>(p.parameter)].as;
    const place sum = parameter(gradient, static_cast<std::size_t>(p.parameter)), more = arrival(p);
    op o;
    o.name = i.name;
    o.function = o.row = "add";
    o.operands = {sum.begin, sum.begin, more.begin};
    o.reads = {read(sum), read(more)};
    o.writes = {write(sum)};
    o.writes.back().replaces = 0;
    const std::int64_t rows = as.ndim > 1 ? as.shard_rows : 1, cols = as.ndim > 1 ? as.cols : as.shard_rows;
    for (const auto& [port, written, access] :
         {std::tuple("y", true, 0), std::tuple("a", false, 0), std::tuple("b", false, 1)})
      o.views.push_back({.port = port,
                         .written = written,
                         .accesses = {access, 1},
                         .shape = {{rows, cols}, 2},
                         .stride = cols});
    all.push_back(std::move(o));
  }
  return all;
}

op flattener::reduce_scalar(const item& i, const place& p) {
  op o;
  o.reads.push_back(read(p));
  o.writes.push_back(write(p));
  o.writes.back().replaces = 0;
  make_collective(o, i, p.begin);
  return o;
}

op flattener::sum_squares(const item& i) {
  const std::vector<range>& ranges = r_.squares_of(i.squares);
  op o = on_ranges(i.name, ranges, {gradient}, {});
  read_paddings(o, ranges);
  o.function = o.row = "sum_squares";
  o.operands = {r_.arena.norm, r_.arena.gradients};
  o.views.push_back({.port = "norm", .written = true, .adds = !i.first, .accesses = {0, 1}});
  const place sum = scalar(norm, r_.arena.norm);
  if (!i.first) o.reads.push_back(read(sum));
  o.writes.push_back(write(sum));
  if (!i.first) o.writes.back().replaces = static_cast<int>(o.reads.size()) - 1;
  return o;
}

op flattener::clear_loss(const item& i) {
  op o;
  o.name = i.name;
  o.function = o.row = "clear";
  o.operands = {r_.arena.loss};
  o.views.push_back({.port = "y", .written = true, .accesses = {0, 1}});
  o.writes.push_back(write(scalar(loss, r_.arena.loss)));
  return o;
}

op flattener::count_labels(const item& i) {
  op o;
  o.name = i.name;
  o.function = o.row = ops::count_row(l_.plan->recipe).name;
  const place sum = input(inputs::label_count, i.microbatch);
  o.operands = {sum.begin};
  if (!i.first) o.reads.push_back(read(sum));
  o.views.push_back(
      {.port = "count", .written = true, .adds = !i.first, .accesses = {0, 1}, .shape = {{1}, 1}});
  const auto take = [&](const named_input& of_tokens) {
    const place taken = input(of_tokens, i.microbatch);
    o.operands.push_back(taken.begin);
    o.views.push_back(view_of(of_tokens.name, false, o.reads.size(), static_cast<std::int64_t>(l_.tokens())));
    o.reads.push_back(read(taken));
  };
  take(inputs::targets);
  if (l_.plan->recipe.token_weights) take(inputs::weights);
  o.writes.push_back(write(sum));
  if (!i.first) o.writes.back().replaces = 0;
  return o;
}

op flattener::skip_unlabeled(const item& i) {
  op o;
  o.name = i.name;
  o.function = o.row = ops::skip_unlabeled.name;
  const place total = scalar(norm, r_.arena.norm), count = input(inputs::label_count, 0);
  o.operands = {total.begin, count.begin};
  o.views.push_back({.port = "total", .written = true, .adds = true, .accesses = {0, 1}});
  o.views.push_back(view_of("count", false, 1, 1));
  o.reads = {read(total), read(count)};
  o.writes = {write(total)};
  o.writes.back().replaces = 0;
  return o;
}

op flattener::update(const item& i) {
  std::vector<int> given{weight, gradient};
  for (int region : moments()) given.push_back(region);
  op o = on_ranges(i.name, r_.updates, given, kept_);
  read_paddings(o, r_.updates);
  const optimizer_row& row = l_.optimizer();
  o.row = row.name;
  o.function = row.kernel.empty() ? row.name : row.kernel;
  for (int region : given) o.operands.push_back(begin_of(region));
  o.operands.push_back(r_.arena.norm);
  o.views.push_back({.port = "norm", .accesses = {static_cast<int>(o.reads.size()), 1}});
  o.reads.push_back(read(scalar(norm, r_.arena.norm)));
  return o;
}

static bool is_of_layers(const item& i) {
  using enum item_kind;
  return i.what == forward || i.what == backward || i.what == forward_layer || i.what == backward_layer;
}

std::vector<op> flattener::flatten(const item& i) {
  std::vector<op> out;
  const auto layers = [&] { return static_cast<int>(r_.stages[i.stage].layers.size()); };
  switch (i.what) {
    case item_kind::forward:
      for (int layer = 0; layer < layers(); ++layer) layer_ops(i, layer, out);
      break;
    case item_kind::backward:
      for (int layer = layers(); layer-- > 0;) layer_ops(i, layer, out);
      break;
    case item_kind::forward_layer:
    case item_kind::backward_layer:
      layer_ops(i, i.layer, out);
      break;
    case item_kind::gather:
      out = gather(i);
      break;
    case item_kind::reduce_scatter:
      out = reduce_scatter(i);
      break;
    case item_kind::add_sums:
      out = add_sums(i);
      break;
    case item_kind::send:
    case item_kind::receive:
      out.push_back(send_or_receive(i));
      break;
    case item_kind::reduce:
      out.push_back(reduce_bucket(i));
      break;
    case item_kind::squares:
      out.push_back(sum_squares(i));
      break;
    case item_kind::clear_loss:
      out.push_back(clear_loss(i));
      break;
    case item_kind::count_labels:
      out.push_back(count_labels(i));
      break;
    case item_kind::reduce_label_count:
      out.push_back(reduce_scalar(i, input(inputs::label_count, 0)));
      break;
    case item_kind::skip_unlabeled:
      out.push_back(skip_unlabeled(i));
      break;
    case item_kind::reduce_norm:
      out.push_back(reduce_scalar(i, scalar(norm, r_.arena.norm)));
      break;
    case item_kind::reduce_loss:
      out.push_back(reduce_scalar(i, scalar(loss, r_.arena.loss)));
      break;
    case item_kind::update:
      out.push_back(update(i));
      break;
  }
  if (out.empty()) {  // half a backward in which the layers have no ops
    op& none = out.emplace_back();
    none.name = i.name;
    none.stream = i.on;
  }
  if (!is_of_layers(i))
    for (op& o : out) o.stream = i.on;
  return out;
}

op flattener::end(bool train) {
  op o;
  o.kind = op_kind::end;
  o.name = "end";
  const auto add = [&](const place& p, holding h) {
    o.reads.push_back(read(p));
    o.holds.push_back(std::move(h));
  };
  for (auto& [p, h] : kept_tensors()) add(p, std::move(h));
  if (train && l_.trains()) add(scalar(norm, r_.arena.norm), {holding_kind::norm});
  if (current_.count({loss})) add(scalar(loss, r_.arena.loss), {holding_kind::loss});
  return o;
}

}  // namespace rankc::codegen
