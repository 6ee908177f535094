// SPDX-License-Identifier: Apache-2.0
// Races and wrong reads. The ends of all accesses cut a rank's arena into cells, which no access divides. A
// cell keeps its writes per stream, in stream order. For each stream a read looks at two writes only: the
// last that has surely ended before it, and the next, which must surely start after it. A write looks at the
// next write only: no other op may write there while its op runs, even if nobody reads the result.
#include <rankc/codegen/joined_accesses.hpp>

#include "passes.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace rankc::codegen::proof {

namespace {

struct write {
  int op, place, value;
};

enum class fault_kind { none, race, overwritten, unwritten };

struct fault {
  fault_kind kind = fault_kind::none;
  int op = -1;  // the op that must run before, or after
  bool operator==(const fault&) const = default;
};

struct byte_range {
  std::size_t begin, end;
};

/// The accesses of an op, each byte once for a value.
struct op_bytes {
  std::vector<access> reads, writes;
};

struct interval {
  int first, last;  // cells [first, last)
};

class arena {
 public:
  arena(const op_table& table, const clocks& clock, int rank)
      : table_(table),
        clock_(clock),
        first_op_(table.first_of_rank[rank]),
        last_op_(table.first_of_rank[rank + 1]),
        streams_(table.program.streams) {
    for (int op = first_op_; op < last_op_; ++op)
      bytes_.push_back({joined_accesses(table.ops[op]->reads), joined_accesses(table.ops[op]->writes)});
    cut();
    fill();
  }

  void check(findings& wrong) const {
    for (int op = first_op_; op < last_op_; ++op)
      for (const access& a : bytes_of(op).reads) check_read(op, a, wrong);
    for (int op = first_op_; op < last_op_; ++op)
      for (const access& a : bytes_of(op).writes) check_write(op, a, wrong);
  }

 private:
  const op_bytes& bytes_of(int op) const { return bytes_[op - first_op_]; }

  void cut() {
    for (const op_bytes& op : bytes_)
      for (const auto* accesses : {&op.reads, &op.writes})
        for (const access& a : *accesses) bounds_.insert(bounds_.end(), {a.begin, a.end});
    std::sort(bounds_.begin(), bounds_.end());
    bounds_.erase(std::unique(bounds_.begin(), bounds_.end()), bounds_.end());
  }

  interval cells(const access& a) const {
    const auto index = [&](std::size_t byte) {
      return static_cast<int>(std::lower_bound(bounds_.begin(), bounds_.end(), byte) - bounds_.begin());
    };
    return {index(a.begin), index(a.end)};
  }

  /// Sorts all writes by cell and stream. Issue order is stream order.
  void fill() {
    segment_.assign(bounds_.size() * streams_ + 1, 0);
    const auto visit = [&](auto&& each) {
      for (int i = first_op_; i < last_op_; ++i)
        for (const access& a : bytes_of(i).writes) {
          const auto [first, last] = cells(a);
          for (int c = first; c < last; ++c) each(segment_[c * streams_ + table_.ops[i]->stream], i, a.value);
        }
    };
    visit([](int& count, int, int) { ++count; });
    int total = 0;
    for (int& s : segment_) total += std::exchange(s, total);
    writes_.resize(total);
    // Filling moves the start of each segment to its end. The next lines move it back.
    visit([&](int& next, int op, int value) { writes_[next++] = {op, table_.place[op], value}; });
    std::copy_backward(segment_.begin(), segment_.end() - 1, segment_.end());
    segment_.front() = 0;
  }

  /// A cell's writes on a stream, as indices: the first, the first that may still run when an op starts, and
  /// the end.
  struct stream_writes {
    int first, next, last;
  };
  stream_writes writes_at(int op, int cell, int stream) const {
    const int first = segment_[cell * streams_ + stream], last = segment_[cell * streams_ + stream + 1];
    const int place = clock_.ended(op, stream);
    const auto ended = [&](const write& w) { return w.place <= place; };
    const auto next = std::partition_point(writes_.begin() + first, writes_.begin() + last, ended);
    return {first, static_cast<int>(next - writes_.begin()), last};
  }
  /// Another op whose write may overlap `op` in time; -1: none.
  int meanwhile(int op, const stream_writes& at) const {
    for (int w = at.next; w < at.last; ++w) {
      if (writes_[w].op == op) continue;
      return clock_.before(op, writes_[w].op) ? -1 : writes_[w].op;
    }
    return -1;
  }

  /// The fault of reading `value` from a cell: either a write that may overlap the read, or a write of
  /// another value (a rival) that no write of this value (a source) is proven to follow. check_contents
  /// checks an op's writes over its own reads.
  fault look(int reader, int value, int cell) const {
    auto &rivals = rivals_, &sources = sources_;
    rivals.clear();
    sources.clear();
    for (int s = 0; s < streams_; ++s) {
      const stream_writes at = writes_at(reader, cell, s);
      if (const int other = meanwhile(reader, at); other >= 0) return {fault_kind::race, other};
      if (at.next == at.first) continue;
      const write& latest = writes_[at.next - 1];  // overwrites all earlier writes on its stream
      (latest.value == value ? sources : rivals).push_back(latest.op);
    }
    for (int rival : rivals)
      if (std::none_of(sources.begin(), sources.end(), [&](int s) { return clock_.before(rival, s); }))
        return {fault_kind::overwritten, rival};
    return sources.empty() ? fault{fault_kind::unwritten, -1} : fault{};
  }

  /// Reports runs of cells with the same fault.
  void check_read(int reader, const access& a, findings& wrong) const {
    const auto [first, last] = cells(a);
    for (int c = first; c < last && !wrong.full();) {
      const fault found = look(reader, a.value, c);
      int stop = c + 1;
      if (found.kind != fault_kind::none) {
        while (stop < last && look(reader, a.value, stop) == found) ++stop;
        report(reader, a.value, found, {bounds_[c], bounds_[stop]}, wrong);
      }
      c = stop;
    }
  }

  /// A later op that may write a cell while an op writes it; -1: none.
  int look(int writer, int cell) const {
    for (int s = 0; s < streams_; ++s)
      if (const int other = meanwhile(writer, writes_at(writer, cell, s)); other > writer) return other;
    return -1;
  }

  /// Reports runs of cells that one other op may write at the same time.
  void check_write(int writer, const access& a, findings& wrong) const {
    const auto [first, last] = cells(a);
    for (int c = first; c < last && !wrong.full();) {
      const int other = look(writer, c);
      int stop = c + 1;
      if (other >= 0) {
        while (stop < last && look(writer, stop) == other) ++stop;
        wrong.add(
            "RC7240: rank {}: op \"{}\" and op \"{}\" may write bytes {}..{} at once: no event orders the "
            "two",
            table_.rank[writer], table_.ops[writer]->name, table_.ops[other]->name, bounds_[c],
            bounds_[stop]);
      }
      c = stop;
    }
  }

  void report(int reader, int value, const fault& f, byte_range bytes, findings& wrong) const {
    const int rank = table_.rank[reader];
    const std::string& name = table_.ops[reader]->name;
    if (f.kind == fault_kind::unwritten)
      return wrong.add("RC7067: rank {}: op \"{}\" reads bytes {}..{}, which nothing has written yet", rank,
                       name, bytes.begin, bytes.end);
    const op& other = *table_.ops[f.op];
    if (f.kind == fault_kind::race) {
      if (writes(other, value, bytes))
        return wrong.add(
            "RC7068: rank {}: op \"{}\" may read bytes {}..{} before op \"{}\" has written them: no event "
            "orders the two",
            rank, name, bytes.begin, bytes.end, other.name);
      return wrong.add(
          "RC7069: rank {}: op \"{}\" may write bytes {}..{} before op \"{}\" has read them: no event orders "
          "the two",
          rank, other.name, bytes.begin, bytes.end, name);
    }
    if (const op* writer = writer_of(value))
      return wrong.add(
          "RC7070: rank {}: op \"{}\" reads bytes {}..{} to get the result of op \"{}\", but they may hold "
          "the result of op \"{}\"",
          rank, name, bytes.begin, bytes.end, writer->name, other.name);
    wrong.add(
        "RC7071: rank {}: op \"{}\" reads bytes {}..{} to get value {}, which no op of the rank writes; they "
        "may hold the result of op \"{}\"",
        rank, name, bytes.begin, bytes.end, value, other.name);
  }

  static bool writes(const op& o, int value, byte_range bytes) {
    return std::any_of(o.writes.begin(), o.writes.end(), [&](const access& w) {
      return w.value == value && w.begin < bytes.end && bytes.begin < w.end;
    });
  }

  /// The first op of the rank that writes a value; null: none.
  const op* writer_of(int value) const {
    for (int i = first_op_; i < last_op_; ++i)
      for (const auto& a : table_.ops[i]->writes)
        if (a.value == value) return table_.ops[i];
    return nullptr;
  }

  const op_table& table_;
  const clocks& clock_;
  int first_op_, last_op_, streams_;
  std::vector<op_bytes> bytes_;      // by op, from first_op_ on
  std::vector<std::size_t> bounds_;  // cell c is bytes [bounds[c], bounds[c + 1])
  std::vector<int> segment_;         // (cells, streams): index of the first write
  std::vector<write> writes_;
  mutable std::vector<int> rivals_, sources_;  // scratch of `look`, kept to reuse its memory
};

}  // namespace

void check_accesses(const op_table& table, const clocks& clock, int rank, findings& wrong) {
  arena(table, clock, rank).check(wrong);
}

}  // namespace rankc::codegen::proof
