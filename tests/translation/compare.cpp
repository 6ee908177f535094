// SPDX-License-Identifier: Apache-2.0
#include "compare.hpp"

#include "covering.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rankc/runtime/program.hpp>

#include <algorithm>
#include <utility>

namespace translation {

using rankc::codegen::op;
using rankc::codegen::op_kind;
using rankc::codegen::program;

namespace {

void join(std::vector<int>& into, const std::vector<int>& more) {
  into.insert(into.end(), more.begin(), more.end());
  std::sort(into.begin(), into.end());
  into.erase(std::unique(into.begin(), into.end()), into.end());
}

/// The calls of a proven rank with their waits, numbered like the text's calls. An op without a call passes
/// its waits to the next op on its lane; a wait for it becomes a wait for the lane's last call before it.
struct proven_calls {
  std::vector<int> ops;                 // index in the rank's ops
  std::vector<std::vector<int>> waits;  // by call
  std::vector<std::vector<int>> end_waits;
};

proven_calls calls_of(const program& p, const std::vector<op>& ops) {
  struct queue {
    std::vector<int> last, waits;
  };
  std::vector<queue> queues(static_cast<std::size_t>(p.streams));
  std::vector<std::vector<int>> ends(ops.size());  // the calls that have ended when an op has
  proven_calls out;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    queue& q = queues[static_cast<std::size_t>(ops[i].stream)];
    for (int w : ops[i].waits) join(q.waits, ends[static_cast<std::size_t>(w)]);
    if (ops[i].kind == op_kind::begin || ops[i].kind == op_kind::end) continue;
    if (!ops[i].function.empty()) {
      q.last = {static_cast<int>(out.ops.size())};
      out.ops.push_back(static_cast<int>(i));
      out.waits.push_back(std::exchange(q.waits, {}));
    }
    ends[i] = q.last;
    join(ends[i], q.waits);
  }
  for (const queue& q : queues) out.end_waits.push_back(q.waits);
  return out;
}

using accesses = std::vector<rankc::codegen::access>;

/// The accesses of an op, without padding that its kernel does not touch: a tensor with a single view ends
/// with its last row. The bytes after fp8 elements are not padding.
std::pair<accesses, accesses> touched_by(const op& o) {
  std::pair<accesses, accesses> of{o.reads, o.writes};
  for (const rankc::codegen::view& v : o.views) {
    std::size_t elements = 1;
    for (const std::int64_t size : v.shape) elements *= static_cast<std::size_t>(size);
    const accesses& all = v.written ? o.writes : o.reads;
    const auto first = static_cast<std::size_t>(v.accesses.first);
    const auto uses = std::count_if(o.views.begin(), o.views.end(), [&](const rankc::codegen::view& other) {
      return other.written == v.written && other.accesses.first == v.accesses.first;
    });
    if (o.row.empty() || o.row == "clear" || v.accesses.count != 1 || first >= all.size() ||
        is_fp8(all[first].type) || uses != 1 || v.offset != 0 ||
        (v.shape.size() > 1 && v.stride != v.shape[1]))
      continue;
    constexpr std::size_t sizes[]{1, 4, 2, 4, 8};
    const std::size_t end = all[first].begin + elements * sizes[static_cast<int>(all[first].type)],
                      before = all[first].end;
    for (accesses* side : {&of.first, &of.second})
      for (rankc::codegen::access& a : *side)
        if (a.begin == all[first].begin && a.end == before) a.end = std::min(a.end, end);
  }
  return of;
}

class comparison {
 public:
  comparison(const recording& text, const program& p, int rank)
      : text_(text),
        p_(p),
        rank_(rank),
        ops_(p.ranks[static_cast<std::size_t>(rank)].ops),
        proven_(calls_of(p, ops_)),
        touched_(all_touched(p.ranks[static_cast<std::size_t>(rank)])) {}

  std::string run() const {
    for (std::size_t i = 0; i < std::min(text_.calls.size(), proven_.ops.size()); ++i)
      if (const std::string s = difference(i); !s.empty())
        return fmt::format("rank {}, op {} \"{}\": {}", p_.number_of(rank_), proven_.ops[i],
                           proven_op(i).name, s);
    return after_the_calls();
  }

 private:
  const op& proven_op(std::size_t call) const { return ops_[static_cast<std::size_t>(proven_.ops[call])]; }

  std::string after_the_calls() const {
    const std::size_t made = text_.calls.size(), wanted = proven_.ops.size();
    const std::string rank = fmt::format("rank {}", p_.number_of(rank_));
    if (made < wanted)
      return fmt::format("{}, op {} \"{}\": the text ends where {} was proven", rank, proven_.ops[made],
                         proven_op(made).name, proven_op(made).function);
    if (made > wanted)
      return fmt::format("{}, after the last op: the text calls {} where the end was proven", rank,
                         text_.calls[wanted].function);
    for (std::size_t s = 0; s < text_.end_waits.size(); ++s)
      if (s >= proven_.end_waits.size() || text_.end_waits[s] != proven_.end_waits[s])
        return fmt::format("{}, op {} \"end\": the text waits on lane {} for {} where {} was proven", rank,
                           ops_.size() - 1, lane_name(static_cast<int>(s)), names(text_.end_waits[s]),
                           s < proven_.end_waits.size() ? names(proven_.end_waits[s]) : "no lane");
    return text_.fault.empty() ? "" : fmt::format("{}: {}", rank, text_.fault);
  }

  /// Check that each router bias is in a range that is moved as proven, and that each such range begins with
  /// one.
  static std::string moved(const call& c, const op& o) {
    std::size_t begun = 0;
    for (const rankc::codegen::view& v : o.views) {
      if (v.written || !v.port.ends_with("weight")) continue;
      const std::size_t at = o.reads[static_cast<std::size_t>(v.accesses[0])].begin;
      const auto range = std::find_if(c.biases.begin(), c.biases.end(),
                                      [&](const bias_range& b) { return b.begin <= at && at < b.end; });
      const rankc::load_balance text = range == c.biases.end() ? rankc::load_balance{} : range->by;
      if (text != v.balances)
        return fmt::format("the text's {} moves a bias by {} toward {} where {} and {} were proven",
                           c.function, text.rate, text.mean, v.balances.rate, v.balances.mean);
      begun += v.balances.any() && range->begin == at;
    }
    return begun == c.biases.size() ? ""
                                    : fmt::format("the text's {} moves what is no parameter", c.function);
  }

  std::string difference(std::size_t i) const {
    const call& c = text_.calls[i];
    const op& o = proven_op(i);
    const std::vector<int>& waits = proven_.waits[i];
    if (!text_.fault.empty() && text_.fault_at <= i) return text_.fault;
    if (c.function != o.function)
      return fmt::format("the text calls {} where {} was proven", c.function, o.function);
    if (c.lane != o.stream)
      return fmt::format("the text calls {} on lane {} where {} was proven", c.function, lane_name(c.lane),
                         lane_name(o.stream));
    if (const std::string s = operands(c, o); !s.empty()) return s;
    if (c.slab && *c.slab != o.rows)
      return fmt::format("the text's {} is of slabs of {} rows where {} were proven", c.function, *c.slab,
                         o.rows);
    if (c.number && *c.number != o.number)
      return fmt::format("the text's {} is given {} where {} was proven", c.function, *c.number, o.number);
    if (c.attention != o.attention)
      return fmt::format(
          "the text's {} has window {}, softcap {} and scale {} where {}, {} and {} were proven", c.function,
          c.attention.window, c.attention.softcap, c.attention.scale, o.attention.window, o.attention.softcap,
          o.attention.scale);
    if (const std::string s = moved(c, o); !s.empty()) return s;
    const auto [reads, writes] = touched_by(o);
    if (const std::string s = cover(c.reads, reads, c.has_padding, touched_); !s.empty())
      return fmt::format("the text's {} reads {}", c.function, s);
    if (const std::string s = cover(c.writes, writes, c.has_padding, touched_); !s.empty())
      return fmt::format("the text's {} writes {}", c.function, s);
    if (const std::string s = communication_of(c, o); !s.empty()) return s;
    if (c.waits != waits)
      return fmt::format("the text waits for {} where {} was proven", names(c.waits), names(waits));
    return "";
  }

  std::string lane_name(int lane) const {
    const auto i = static_cast<std::size_t>(lane);
    return i < text_.lanes.size() ? text_.lanes[i] : std::to_string(lane);
  }

  std::string operands(const call& c, const op& o) const {
    if (c.operands.size() != o.operands.size())
      return fmt::format("the text's {} has {} operands where {} were proven", c.function, c.operands.size(),
                         o.operands.size());
    for (std::size_t i = 0; i < c.operands.size(); ++i)
      if (c.operands[i] != o.operands[i])
        return fmt::format("operand {} of the text's {} begins at {} where {} was proven", i + 1, c.function,
                           c.operands[i], o.operands[i]);
    return "";
  }

  std::string communication_of(const call& c, const op& o) const {
    const bool meets = o.kind == op_kind::send || o.kind == op_kind::receive || o.kind == op_kind::collective;
    if (meets != !c.communicates.empty())
      return fmt::format("the text's {} {} where the proven op {}", c.function,
                         meets ? "is a kernel" : "communicates", meets ? "communicates" : "is a kernel");
    if (!meets) return "";
    const communication& t = c.communicates[0];
    if (t.site != o.message || t.name != o.name)
      return fmt::format("the text names site {} \"{}\" where {} \"{}\" was proven", t.site, t.name,
                         o.message, o.name);
    if (c.by_rows != (o.by_rows > 0))
      return fmt::format("the text's {} is {} a product where it was proven {} one", c.function,
                         c.by_rows ? "beside" : "not beside", o.by_rows > 0 ? "beside" : "apart from");
    if (t.bytes != o.bytes)
      return fmt::format("the text moves {} bytes where {} were proven", t.bytes, o.bytes);
    const rankc::codegen::communicator& proven = p_.communicators[static_cast<std::size_t>(o.communicator)];
    const std::vector<int> members = represented(t.members), expected = numbers(proven.ranks);
    if (t.communicator != proven.name || members != expected)
      return fmt::format("the text uses communicator \"{}\" of ranks {} where \"{}\" of ranks {} was proven",
                         t.communicator, fmt::join(members, ", "), proven.name, fmt::join(expected, ", "));
    if (o.kind == op_kind::collective) return "";
    const int me = p_.number_of(rank_), peer = p_.number_of(o.peer);
    if (t.members.size() != 2 || t.members[t.members[0] == me ? 1 : 0] != peer)
      return fmt::format("the text's communicator is of ranks {} where rank {} was proven",
                         fmt::join(t.members, ", "), peer);
    return "";
  }

  /// Ranks of the program as ranks of the world; below, those ranks of the world that the program contains.
  std::vector<int> numbers(const std::vector<int>& ranks) const {
    std::vector<int> out;
    for (int r : ranks) out.push_back(p_.number_of(r));
    return out;
  }
  std::vector<int> represented(const std::vector<int>& members) const {
    std::vector<int> out;
    for (int m : members)
      for (std::size_t r = 0; r < p_.ranks.size(); ++r)
        if (p_.number_of(static_cast<int>(r)) == m) out.push_back(m);
    return out;
  }

  std::string names(const std::vector<int>& calls) const {
    std::string out;
    for (int c : calls)
      out +=
          fmt::format("{}{} \"{}\"", out.empty() ? "op " : ", op ", proven_.ops[static_cast<std::size_t>(c)],
                      proven_op(static_cast<std::size_t>(c)).name);
    return out.empty() ? "nothing" : out;
  }

  const recording& text_;
  const program& p_;
  const int rank_;
  const std::vector<op>& ops_;
  const proven_calls proven_;
  const std::vector<interval> touched_;
};

}  // namespace

std::string compare(const recording& text, const program& p, int rank) {
  return comparison(text, p, rank).run();
}

std::string compare(const text& t, const program& p, bool trains) {
  for (int r = 0; r < static_cast<int>(p.ranks.size()); ++r) {
    if (std::string s = compare_tables(*t.about, p, r, trains); !s.empty()) return s;
    if (std::string s = compare(t.record(p.number_of(r), trains), p, r); !s.empty()) return s;
  }
  return "";
}

}  // namespace translation
