// SPDX-License-Identifier: Apache-2.0
// Checks the places of a communication's operands on its members. A call has one pointer for its inputs and
// one for its results, and all tensors lie behind these. Members whose arenas have one layout find each
// other's operands at their own offsets.
#include "passes.hpp"

#include <algorithm>
#include <cstdint>

namespace rankc::codegen::proof {

namespace {

/// Two members of a collective, or a send and its receive.
class pair_of_members {
 public:
  pair_of_members(const op_table& table, int a, int b, findings& wrong)
      : table_(table), a_(a), b_(b), x_(*table.ops[a]), y_(*table.ops[b]), wrong_(wrong) {}

  void check() { x_.kind == op_kind::collective ? check_collective() : check_message(); }

 private:
  const communicator& group() const { return table_.program.communicators[x_.communicator]; }

  void check_collective() {
    if (x_.reads.size() != y_.reads.size() || x_.writes.size() != y_.writes.size())
      return wrong_.add(
          "RC7242: rank {}: op \"{}\" reads {} tensors and writes {}, and {} and {} on rank {}: members give "
          "a collective the same number of tensors",
          table_.rank[a_], x_.name, x_.reads.size(), x_.writes.size(), y_.reads.size(), y_.writes.size(),
          table_.rank[b_]);
    for (const auto of : {&op::reads, &op::writes}) {
      if (group().one_layout) check_offsets(x_.*of, y_.*of);
      else if (x_.does <= collective_kind::reduce_scatter) check_order(x_.*of, y_.*of);
    }
  }

  void check_message() {
    const auto operands = [](const op& o) -> const std::vector<access>& {
      return o.kind == op_kind::send ? o.reads : o.writes;
    };
    if (group().one_layout && operands(x_).size() == operands(y_).size())
      check_offsets(operands(x_), operands(y_));
  }

  void check_offsets(const std::vector<access>& x, const std::vector<access>& y) {
    for (std::size_t i = 0; i < x.size(); ++i)
      if (x[i].begin != y[i].begin)
        return wrong_.add(
            "RC7243: rank {}: op \"{}\" has an operand at byte {}, and at byte {} on rank {}: each member of "
            "communicator \"{}\" expects the operands of the others at its own offset",
            table_.rank[a_], x_.name, x[i].begin, y[i].begin, table_.rank[b_], group().name);
  }

  void check_order(const std::vector<access>& x, const std::vector<access>& y) {
    const auto behind_first = [](const std::vector<access>& operands, std::size_t i) {
      return static_cast<std::int64_t>(operands[i].begin) - static_cast<std::int64_t>(operands[0].begin);
    };
    for (std::size_t i = 0; i < x.size(); ++i)
      if (behind_first(x, i) != behind_first(y, i))
        return wrong_.add(
            "RC7241: rank {}: op \"{}\" has tensor {} {} bytes after its first, and {} bytes on rank {}: all "
            "members must place the tensors of one call in the same order",
            table_.rank[a_], x_.name, i, behind_first(x, i), behind_first(y, i), table_.rank[b_]);
  }

  const op_table& table_;
  int a_, b_;
  const op &x_, &y_;
  findings& wrong_;
};

/// True if two ranks begin with the same tensors in the same bytes and run ops of the same names. Two
/// pipeline ranks have different stages or microbatches, even if both have copies of the same layers.
bool run_alike(const rank_program& a, const rank_program& b) {
  const op &x = a.ops.front(), &y = b.ops.front();
  const auto same = [&](const access& v, const access& w) { return v.begin == w.begin && v.end == w.end; };
  const auto same_name = [](const holding& h, const holding& i) {
    return h.kind == i.kind && h.name == i.name;
  };
  const auto same_op = [](const op& o, const op& other) { return o.name == other.name; };
  return !x.holds.empty() && a.ops.size() > 2 && a.arena_bytes == b.arena_bytes &&
         std::equal(x.writes.begin(), x.writes.end(), y.writes.begin(), y.writes.end(), same) &&
         std::equal(x.holds.begin(), x.holds.end(), y.holds.begin(), y.holds.end(), same_name) &&
         std::equal(a.ops.begin(), a.ops.end(), b.ops.begin(), b.ops.end(), same_op);
}

/// Refuses a communicator without `one_layout` whose members run alike. Such members belong to one pipeline
/// rank, and the runtime assumes that their arenas have one layout.
void check_layouts(const program& p, findings& wrong) {
  for (const communicator& c : p.communicators) {
    const auto is_like_first = [&](int r) { return run_alike(p.ranks[c.ranks.front()], p.ranks[r]); };
    if (!c.one_layout && c.members() > 1 && std::all_of(c.ranks.begin(), c.ranks.end(), is_like_first))
      wrong.add(
          "RC7244: communicator \"{}\" is marked as having arenas with different layouts, but its members "
          "begin with the same tensors at the same bytes and run the same ops",
          c.name);
  }
}

}  // namespace

void check_operands(const op_table& table, const joint_events& events, findings& wrong) {
  check_layouts(table.program, wrong);
  for (int event = 0; event < events.size() && !wrong.full(); ++event) {
    const auto members = events.members[event];
    for (int other : members.subspan(1)) pair_of_members(table, members[0], other, wrong).check();
  }
}

}  // namespace rankc::codegen::proof
