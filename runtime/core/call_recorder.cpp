// SPDX-License-Identifier: Apache-2.0
#include <rankc/runtime/call_recorder.hpp>

#include <rankc/runtime/engine.hpp>
#include <rankc/runtime/failure.hpp>
#include <rankc/runtime/hashed_places.hpp>
#include <rankc/runtime/named_inputs.hpp>

#include <algorithm>
#include <utility>

namespace rankc::runtime {
namespace {

bool has(const operand_list& list, member_kind kind) {
  return std::ranges::any_of(list.all_members(), [=](const call_member& m) { return m.of.kind == kind; });
}

/// Member `n` of a kind.
const call_member& member(const operand_list& list, member_kind kind, std::size_t n = 0) {
  for (const call_member& m : list.all_members())
    if (m.of.kind == kind && n-- == 0) return m;
  throw failure(1, "RC5144: {} lacks a member that calls of its kind have; generate the program again",
                word_in(list.type));
}

/// The tensor whose elements a collective adds up; null: it adds nothing up.
const call_member* summed_tensor(std::string_view name, const operand_list& list) {
  if (name.starts_with("all_reduce")) return &member(list, member_kind::tensor);
  const bool sums = name.starts_with("reduce_scatter") || name.starts_with("scatter_sums");
  return sums ? &member(list, member_kind::tensor, 1) : nullptr;
}

std::size_t element_bytes(const detail::member_type& tensor) {
  return tensor.bytes / (tensor.rows * tensor.columns);
}

/// Bytes that a rank communicates.
std::size_t moved_bytes(std::string_view name, const operand_list& list) {
  const bool is_of_second = name == "all_gather" || name == "gather_offsets" || name == "from_experts";
  const std::size_t bytes = member(list, member_kind::tensor, is_of_second).of.bytes;
  return name.starts_with("shift") ? bytes + member(list, member_kind::tensor, 1).of.bytes : bytes;
}

std::vector<hashed_range> hashed_ranges(std::span<const range> all) {
  std::vector<hashed_range> ranges;
  for (const range& r : all) ranges.push_back({r.first, r.count, r.decay, r.balances});
  return joined_ranges(ranges);
}

void list(std::string& all, std::size_t number) { all += (all.empty() ? "" : ", ") + std::to_string(number); }

const std::vector<int> never_recorded{-1};  // the calls of such an event

constexpr std::size_t digits = 4;  // of an entry

std::uint64_t entry_of(const char* at) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < digits; ++i)
    value = value << 4 | static_cast<std::uint64_t>(at[i] <= '9' ? at[i] - '0' : at[i] - 'a' + 10);
  return value;
}

/// The hash of a link's communicator; 0: the rank is no member.
std::uint64_t hash_of_link(const description& about, const lane_communicator& k, int index) {
  const communicator& c = about.communicators[static_cast<std::size_t>(k.communicator)];
  const auto place = std::find(c.ranks.begin(), c.ranks.end(), index) - c.ranks.begin();
  if (place == std::ssize(c.ranks)) return 0;
  return hash_of(c.name, c.ranks, k.over == over::peer ? static_cast<int>(place) : -1);
}

hashed_places places_of(const layout& tables, bool trains) {
  hashed_places all{.arena_bytes = tables.arena_bytes};
  if (tables.reads_tokens) all.tokens = tables.tokens.byte;
  if (tables.reads_targets) all.targets = tables.targets.byte;
  if (tables.reads_targets || tables.has_loss) all.loss = tables.loss.byte;
  if (tables.reads_starts) all.starts = tables.starts.byte;
  if (trains) all.norm = tables.norm.byte;
  for (const input_row& i : tables.inputs) all.inputs += hash_of_input(i.name, i.where.byte);
  return all;
}

hashed_type type_of_input(const description& about, const input_row& input) {
  if (input.type == input_type::index) return hashed_type::i32;
  switch (input.type == input_type::real ? about.type : about.wide()) {
    case dtype::f64:
      return hashed_type::f64;
    case dtype::f32:
      return hashed_type::f32;
    default:
      return hashed_type::bf16;
  }
}

/// The hash of the rows of an input that the ranks of a pipeline coordinate have.
std::uint64_t hash_of_rows(const description& about, int pp, const std::string& name,
                           const input_row& input) {
  const bool is_of_step = input.rows == input_rows::step;
  const std::int64_t width = is_of_step ? 1 : input.width,
                     own = is_of_step ? 0 : static_cast<std::int64_t>(count_values(about, input)) / width,
                     apart = about.microbatches > 1 ? own * about.dp : 0;
  const auto first = std::ranges::find(about.ranks, pp, &rank_row::pp);
  row_hasher hash(
      {name, type_of_input(about, input), bytes_of_input(about, *first, input), about.microbatches, apart});
  for (std::size_t rank = 0; rank < about.ranks.size(); ++rank) {
    const rank_row& r = about.ranks[rank];
    if (r.pp != pp) continue;
    hash.begin_rank(static_cast<int>(rank));
    for (const input_run& run : runs_of(about, r, input))
      hash.add_rows(r.dp * own + static_cast<std::int64_t>(run.first) / width,
                    static_cast<std::int64_t>(run.count) / width);
  }
  return hash.value();
}

/// The sum of the hashes of the rows of all inputs.
std::uint64_t hash_of_rows(const description& about, int pp) {
  const layout& tables = about.layouts[static_cast<std::size_t>(pp)];
  std::uint64_t all = 0;
  const auto add = [&](const std::string& name, const input_row& i) {
    all += hash_of_rows(about, pp, name, i);
  };
  const input_row ids{.name = "", .where = {}, .type = input_type::index};
  input_row starts = ids;
  starts.whole_sequences = true;
  if (tables.reads_tokens) add("ids", ids);
  if (tables.reads_targets) add("targets", ids);
  if (tables.reads_starts) add("starts", starts);
  for (const input_row& i : tables.inputs) add("input " + std::string(i.name), i);
  return all;
}

/// The sum of the hashes of the tensors that a rank keeps from step to step.
std::uint64_t hash_of_kept(const description& about, const layout& tables) {
  std::uint64_t all = 0;
  const bool has_copy = about.type == dtype::bf16 && !about.bf16_weights;
  const int moments = about.trains ? about.moments : 0;
  for (const parameter& p : tables.parameters) {
    const auto add = [&](kept_kind kind, at region, std::size_t element) {
      all += hash_of(hashed_tensor{kind, p.name, region.byte + p.element * element});
    };
    const std::size_t of_moment = size_of(type_of(about, region::first_moment));
    if (!is_copy_alone(about, tables, region::weights, p.element))
      add(kept_kind::weight, tables.weights, size_of(type_of(about, region::weights)));
    if (has_copy) add(kept_kind::working_copy, tables.working_copy, size_of(dtype::bf16));
    if (p.element >= tables.trained_count()) continue;
    if (moments > 0) add(kept_kind::first_moment, tables.first_moment, of_moment);
    if (moments > 1) add(kept_kind::second_moment, tables.second_moment, of_moment);
  }
  for (const rope_table& r : tables.ropes)
    all += hash_of(hashed_tensor{kept_kind::rotary, "", r.where.byte, std::int64_t{r.positions} * about.cp,
                                 r.dim, r.theta, r.scaling});
  return all;
}

}  // namespace

call_recorder::call_recorder(const description& about, int index, const proven_step& proven, bool on_host)
    : about_(about),
      index_(index),
      proven_(proven),
      on_host_(on_host),
      row_(about.ranks[static_cast<std::size_t>(proven.rank)]),
      lanes_(about.layouts[static_cast<std::size_t>(row_.pp)].lanes),
      queues_(lanes_.size()),
      events_(static_cast<std::size_t>(about.layouts[static_cast<std::size_t>(row_.pp)].events),
              never_recorded) {
  row_.links = about.ranks[static_cast<std::size_t>(index)].links;
  for (const lane_communicator& k : row_.links) communicators_.push_back(hash_of_link(about, k, index));
}

std::uint64_t call_recorder::hash_of_links(const description& about, int index) {
  hasher f;
  for (const lane_communicator& k : about.ranks[static_cast<std::size_t>(index)].links) {
    f.add(static_cast<std::uint64_t>(k.lane));
    f.add(static_cast<std::uint64_t>(k.over));
    f.add(hash_of_link(about, k, index));
  }
  return f.value();
}

/// Null where the layout has no such event.
std::vector<int>* call_recorder::find(event e) {
  const bool is_there = e.index >= 0 && static_cast<std::size_t>(e.index) < events_.size();
  return is_there ? &events_[static_cast<std::size_t>(e.index)] : nullptr;
}

void call_recorder::record(int lane, event e) {
  if (std::vector<int>* const known = find(e)) *known = queues_[static_cast<std::size_t>(lane)].end();
}
void call_recorder::wait(int lane, event e) {
  const std::vector<int>* const known = find(e);
  queues_[static_cast<std::size_t>(lane)].wait(known != nullptr ? *known : never_recorded);
}
void call_recorder::follow(int next, int before) {
  queues_[static_cast<std::size_t>(next)].wait(queues_[static_cast<std::size_t>(before)].end());
}

std::uint64_t call_recorder::communicator(int lane, over what) const {
  for (std::size_t i = 0; i < row_.links.size(); ++i)
    if (row_.links[i].lane == lane && row_.links[i].over == what) return communicators_[i];
  return 0;
}

std::string_view call_recorder::name_of(const char* type) {
  std::string_view& known = names_[type];
  if (known.empty()) known = word_in(type);
  return known;
}

void call_recorder::call(int lane, const void* call, void (*describe)(const void*, operand_list&)) {
  list_.clear();
  describe(call, list_);
  const operand_list& list = list_;
  hashed_call made{.name = list.row != nullptr ? list.row : name_of(list.type), .lane = lane};
  if (has(list, member_kind::site)) communicate(list, made);
  if (has(list, member_kind::shards)) return move_shards(list, made);
  made.operands = std::move(operands_);
  made.operands.clear();
  take_operands(list, made);
  add(made);
  operands_ = std::move(made.operands);
}

void call_recorder::communicate(const operand_list& list, hashed_call& made) {
  const message& site = member(list, member_kind::site).as<message>();
  const bool is_pair = made.name == "send" || made.name == "receive";
  made.communicator =
      communicator(made.lane, is_pair ? over::peer : member(list, member_kind::over).as<over>());
  made.site = site.name;
  made.site_index = site.index;
  made.by_rows = std::exchange(by_rows_, false);
  made.bytes = moved_bytes(made.name, list);
  if (const call_member* const source = summed_tensor(made.name, list)) made.summed = source->of.type;
  // The two tensors of a shift may have different sizes.
  if (made.name.starts_with("shift"))
    made.numbers.push_back(static_cast<double>(member(list, member_kind::tensor).of.bytes));
}

/// Hashes one call for each tensor.
void call_recorder::move_shards(const operand_list& list, hashed_call& made) {
  const call_member &to = member(list, member_kind::tensor), &from = member(list, member_kind::tensor, 1);
  const std::size_t size = element_bytes(to.of);
  const auto place = [&](const call_member& region, std::size_t element) {
    return region.as<at>().byte + element * element_bytes(region.of);
  };
  const bool adds = made.name == "add_sums", gathers = made.name == "gather_shards",
             rounds = made.name == "scatter_sums_in_bf16";
  for (const shard_range& s : member(list, member_kind::shards).as<std::span<const shard_range>>()) {
    hashed_call part = made;
    part.bytes = s.count * size;
    if (gathers) {
      part.name = "all_gather";
      part.operands = {{place(to, s.gathered)}, {place(from, s.kept)}};
    } else if (adds) {
      part.name = "add";
      for (const std::size_t begin : {place(to, s.kept), place(to, s.kept), place(from, s.arriving)})
        part.operands.push_back({begin, 1, s.count, s.count, to.of.type});
    } else {
      const auto kept = member(list, member_kind::shard_place).as<std::size_t shard_range::*>();
      part.name = rounds ? "reduce_scatter_in_bf16" : "reduce_scatter";
      part.operands = {{place(to, s.*kept)}, {place(from, s.gathered)}};
    }
    add(part);
  }
}

/// Tensors stand before scratch. Calls over regions, and communications that move bytes as they lie, have
/// begins alone. A communication that moves rows to other places has constants of sizes.
void call_recorder::take_operands(const operand_list& list, hashed_call& made) const {
  using enum member_kind;
  const bool by_begins = has(list, ranges) || (made.site_index >= 0 && !has(list, size));
  std::vector<hashed_operand> behind;
  for (const call_member& m : list.all_members()) {
    const bool is_operand = m.of.kind == tensor || m.of.kind == scratch;
    if (is_operand && by_begins) made.operands.push_back({m.as<at>().byte});
    else if (m.of.kind == scratch) behind.push_back({m.as<at>().byte});
    else if (m.of.kind == tensor)
      made.operands.push_back({m.as<at>().byte, m.of.rows, m.of.columns, m.of.stride, m.of.type});
    if (m.of.kind == size) made.numbers.push_back(static_cast<double>(m.of.rows));
    if (m.of.kind == number) made.numbers.push_back(m.as<double>());
    if (m.of.kind == first) made.add_first(m.as<std::size_t>());
    if (m.of.kind == setting) made.add(m.as<attention_setting>());
    if (m.of.kind == member_kind::store) made.adds = m.as<runtime::store>() == runtime::store::add;
    if (m.of.kind == reduction && m.as<runtime::reduction>() == runtime::reduction::max)
      made.name = "all_reduce_max";
    if (m.of.kind == ranges) made.ranges = hashed_ranges(m.as<std::span<const range>>());
  }
  made.operands.insert(made.operands.end(), behind.begin(), behind.end());
}

void call_recorder::clear(int lane, at data, std::size_t bytes) {
  hashed_call made{
      .name = "clear", .lane = lane, .operands = {{data.byte}}, .numbers = {static_cast<double>(bytes)}};
  add(made);
}

void call_recorder::add(hashed_call& made) {
  const bool beside = made.lane != 0 && lanes_[static_cast<std::size_t>(made.lane)].computes;
  const int on = beside ? made.lane : 0;
  hashed_lane& queue = queues_[static_cast<std::size_t>(made.lane)];
  if (acting_on_ != on) made.lane += static_cast<int>(lanes_.size());  // by another action than that lane's
  made.waits = queue.call(calls_);
  hash_ = hash_of(hash_, made);
  ++calls_;
  const auto every = static_cast<std::size_t>(proven_.every);
  const bool is_over = calls_ > proven_.calls;
  if (is_over ||
      (calls_ % every == 0 && entry_of(proven_.after + (calls_ / every - 1) * digits) != short_hash(hash_)))
    refuse(made);
}

void call_recorder::refuse(const hashed_call& found) const {
  const auto every = static_cast<std::size_t>(proven_.every);
  const std::size_t first = (calls_ - 1) / every * every + 1;
  const bool is_one = first == calls_;
  const std::string which = is_one ? "call " : "one of the calls " + std::to_string(first) + " to ";
  std::string begins, waits;
  for (const hashed_operand& o : found.operands) list(begins, o.begin);
  for (const int w : found.waits) list(waits, static_cast<std::size_t>(w) + 1);
  throw failure(1,
                "RC5145: rank {} does not make the calls of the {} step that was proven: {}{} of {} "
                "differs{}{} in {} on lane {}, with operands at {}{}{}; generate the program again",
                index_, proven_.trains ? "training" : "evaluation", which, calls_, proven_.calls,
                is_one ? ", " : ", the last of them ", found.name, action_,
                lanes_[static_cast<std::size_t>(found.lane) % lanes_.size()].name, begins,
                waits.empty() ? ", waiting for none" : ", waiting for calls ", waits);
}

void call_recorder::finish() {
  const layout& tables = about_.layouts[static_cast<std::size_t>(row_.pp)];
  hashed_places places = places_of(tables, proven_.trains);
  places.kept = hash_of_kept(about_, tables);
  places.rows = hash_of_rows(about_, row_.pp);
  places.on_host = on_host_;
  places.deterministic = about_.deterministic;
  const std::uint64_t all = hash_of(hash_of(hash_, queues_), places);
  if (calls_ == proven_.calls && all == proven_.hash) return;
  throw failure(1,
                "RC5146: rank {} does not make the calls of the {} step that was proven: after call {} of "
                "{}, in {}, the step ends differently, or the offsets in its tables, the rows that its ranks "
                "load, its target or `deterministic` differ; generate the program again",
                index_, proven_.trains ? "training" : "evaluation", calls_, proven_.calls, action_);
}

}  // namespace rankc::runtime
