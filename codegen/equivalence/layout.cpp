// SPDX-License-Identifier: Apache-2.0
#include "layout.hpp"

#include <rankc/codegen/scratch_writes.hpp>
#include <rankc/contract/fp8.hpp>

#include <algorithm>

#include "contents.hpp"
#include "types.hpp"

namespace rankc::codegen::algebra {

namespace {

/// Bytes of the arena: rows of `width` bytes, `pitch` apart.
struct bytes {
  std::size_t begin, rows, width, pitch;
  std::size_t end() const { return begin + (rows - 1) * pitch + width; }
  bool operator==(const bytes&) const = default;
};

bytes bytes_of(const op& o, const view& v) {
  const std::vector<access>& accesses = v.written ? o.writes : o.reads;
  const access& first = accesses.at(static_cast<std::size_t>(v.accesses.first));
  const auto size = static_cast<std::size_t>(size_of(first.type));
  const std::size_t cols = v.shape.empty() ? 1 : static_cast<std::size_t>(v.shape[v.shape.size() - 1]);
  const std::size_t rows = v.shape.size() == 2 ? static_cast<std::size_t>(v.shape[0]) : 1;
  return {first.begin + v.offset, rows, cols * size,
          rows > 1 ? static_cast<std::size_t>(v.stride) * size : cols * size};
}

bool meet(const bytes& a, const bytes& b) {
  if (a.end() <= b.begin || b.end() <= a.begin) return false;
  const std::size_t pitch = a.rows > 1 ? a.pitch : b.pitch;
  if ((a.rows > 1 && b.rows > 1 && a.pitch != b.pitch) || a.width > pitch || b.width > pitch) return true;
  const std::size_t rows = std::max(a.rows, b.rows) + 1;
  const std::size_t from_a = (b.begin + rows * pitch - a.begin) % pitch,
                    from_b = (a.begin + rows * pitch - b.begin) % pitch;
  return from_a < a.width || from_b < b.width;  // columns, relative to the first of either
}

void check_strides(const op& o, const fact& f) {
  for (std::size_t i = 0; i < f.ports.size(); ++i) {
    const view& v = o.views[i];
    if (v.shape.size() != 2 || v.stride == v.shape[1]) continue;
    if (!f.ports[i].stride)
      throw refusal("RC7565: tensor {} has rows {} elements apart; expected {}, its width", v.port, v.stride,
                    v.shape[1]);
  }
  for (std::size_t i = 0; i < f.ports.size(); ++i)
    for (std::size_t k = i + 1; f.ports[i].stride && k < f.ports.size(); ++k)
      if (f.ports[k].stride == f.ports[i].stride && o.views[k].stride != o.views[i].stride)
        throw refusal(
            "RC7566: tensor {} has rows {} elements apart and tensor {} has rows {} apart; expected one "
            "distance",
            o.views[i].port, o.views[i].stride, o.views[k].port, o.views[k].stride);
}

/// Whether a row takes the first index of a port's part of an axis, or calls a row that does so with the
/// port.
bool takes_first(const fact& f, int port) {
  const std::vector<axis_use>& axes = f.ports[static_cast<std::size_t>(port)].axes;
  const bool own = std::any_of(axes.begin(), axes.end(), [&](const axis_use& a) {
    return f.first.find(a.of) != std::string::npos || ((f.positions || f.chunks || f.ring) && a.of == 't');
  });
  const auto is_taken_by = [port](const equation& e) {
    if (e.is != equation::kind::call) return false;
    const fact& called = facts()[static_cast<std::size_t>(e.row)];
    for (std::size_t i = 0; i < e.results.size(); ++i)
      if (e.results[i] == port && takes_first(called, static_cast<int>(i))) return true;
    for (std::size_t i = 0; i < e.operands.size(); ++i)
      if (e.operands[i] == port && takes_first(called, called.results + static_cast<int>(i))) return true;
    return false;
  };
  return own || std::any_of(f.equations.begin(), f.equations.end(), is_taken_by);
}

/// The port whose first index the op passes to its kernel: the first operand that has such an index and is
/// not a gradient. Null if there is none.
const view* told_port(const op& o, const fact& f) {
  for (std::size_t i = static_cast<std::size_t>(f.results); i < f.ports.size(); ++i)
    if (takes_first(f, static_cast<int>(i)) && !f.ports[i].name.starts_with("d_")) return &o.views[i];
  return nullptr;
}

/// Checks that each tensor of an op begins at the first index that the op passes to its kernel, or at 0.
void check_first(const op& o, const fact& f) {
  for (std::size_t i = 0; i < f.ports.size(); ++i) {
    const view& v = o.views[i];
    if (v.first == 0) continue;
    if (!takes_first(f, static_cast<int>(i)))
      throw refusal(
          "RC7567: tensor {} begins at index {}, but the kernel takes no first index for it; expected 0",
          v.port, v.first);
    if (const view* const told = told_port(o, f); told != nullptr && told->first != v.first)
      throw refusal("RC7756: tensor {} begins at index {}; the kernel gets {}, where {} begins", v.port,
                    v.first, told->first, told->port);
  }
}

void check_adds(const op& o, const fact& f) {
  const view* other = nullptr;
  for (std::size_t i = 0; i < static_cast<std::size_t>(f.results); ++i) {
    const view& v = o.views[i];
    if (v.adds && !f.ports[i].adds)
      throw refusal("RC7568: result {} is added to its buffer; its kernel overwrites the buffer", v.port);
    if (!f.ports[i].adds) continue;
    if (other && other->adds != v.adds)
      throw refusal("RC7569: one of results {} and {} is added to its buffer; expected both or none",
                    other->port, v.port);
    other = &v;
  }
}

[[noreturn]] void refuse_type(const port& p, std::string_view found) {
  if (p.holds.empty())
    throw refusal("RC7570: tensor {} is in {}; expected floating-point numbers of more than 8 bits", p.name,
                  found);
  throw refusal("RC7571: tensor {} is in {}; expected {}", p.name, found, p.holds);
}

/// Checks that operands are fp8 or integers exactly where the kernel takes these, and in its format.
void check_types(const op& o, const fact& f) {
  for (std::size_t i = 0; i < f.ports.size(); ++i)
    for (const int a : o.views[i].accesses) {
      const element_type type = (o.views[i].written ? o.writes : o.reads)[static_cast<std::size_t>(a)].type;
      const std::string_view is = element_type_names[static_cast<int>(type)];
      const bool is_special = is_fp8(type) || type == element_type::i32;
      if (f.ports[i].holds != (is_special ? is : "")) refuse_type(f.ports[i], is);
    }
}

/// Checks that an fp8 tensor is covered whole, with the scales behind its elements, by one view or by several
/// adjacent views.
void check_whole_fp8(const op& o, const fact& f) {
  for (std::size_t i = 0; i < f.ports.size(); ++i) {
    const view& v = o.views[i];
    if (!f.ports[i].is_fp8()) continue;
    std::size_t columns = 0;
    const auto rows = static_cast<std::size_t>(v.shape[0]);
    for (const view& beside : o.views)
      if (beside.written == v.written && beside.accesses == v.accesses) {
        if (beside.shape[0] != v.shape[0])
          throw refusal("RC7572: tensors {} and {} have {} and {} rows of one fp8 tensor", v.port,
                        beside.port, v.shape[0], beside.shape[0]);
        columns += static_cast<std::size_t>(beside.shape[1]);
      }
    const access& a = (v.written ? o.writes : o.reads)[static_cast<std::size_t>(v.accesses.first)];
    const std::size_t bytes = runtime::fp8_bytes(rows, columns, a.type == element_type::e4m3_rows);
    if (v.accesses.count != 1 || a.end - a.begin != bytes)
      throw refusal("RC7573: tensor {} has {} bytes of {}; expected a whole tensor of {} x {}, which has {}",
                    v.port, a.end - a.begin, f.ports[i].holds, rows, columns, bytes);
  }
}

/// Checks that a sum over tokens is in f32 or f64, and not narrower than its addends. Counts are integers.
void check_sums(const op& o, const fact& f) {
  if (f.arranges) return;
  for (std::size_t i = 0; i < static_cast<std::size_t>(f.results); ++i) {
    if (!f.ports[i].sums_tokens) continue;
    for (const int w : o.views[i].accesses) {
      const element_type type = o.writes[static_cast<std::size_t>(w)].type;
      const bool is_narrow = std::any_of(o.reads.begin(), o.reads.end(), [&](const access& r) {
        return is_wide(r.type) && size_of(r.type) > size_of(type);
      });
      if (!is_wide(type) || is_narrow)
        throw refusal(
            "RC7574: result {} is summed in {}; expected f32 or f64, and no narrower than the operands",
            o.views[i].port, element_type_names[static_cast<int>(type)]);
    }
  }
}

/// Checks that scratch does not overlap any other access.
void check_scratch(const op& o) {
  for (std::size_t w = 0; w < o.writes.size(); ++w) {
    if (!is_scratch(o, w)) continue;
    for (const auto* accesses : {&o.reads, &o.writes})
      for (const access& a : *accesses)
        if (&a != &o.writes[w] && a.begin < o.writes[w].end && o.writes[w].begin < a.end)
          throw refusal("RC7575: the op's scratch overlaps one of its tensors");
  }
}

void check_overlaps(const op& o, const fact& f) {
  for (std::size_t w = 0; w < static_cast<std::size_t>(f.results); ++w) {
    const bytes written = bytes_of(o, o.views[w]);
    for (std::size_t i = 0; i < o.views.size(); ++i) {
      if (i == w || (i < w && o.views[i].written)) continue;
      const bytes other = bytes_of(o, o.views[i]);
      if (!meet(written, other)) continue;
      const std::vector<std::string>& over = f.ports[w].over;
      const bool allowed = !o.views[i].written && written == other &&
                           std::find(over.begin(), over.end(), o.views[i].port) != over.end();
      if (!allowed) throw refusal("RC7576: result {} overlaps tensor {}", o.views[w].port, o.views[i].port);
    }
  }
}

}  // namespace

static refusal untouched_bytes(const view& v) {
  return refusal("RC7577: tensor {} is in bytes that the op neither reads nor writes", v.port);
}

void check_layout(const op& o, const fact& f) {
  for (const view& v : o.views)
    if (v.accesses.count < 1 || v.accesses.first < 0 ||
        static_cast<std::size_t>(v.accesses.first + v.accesses.count) >
            (v.written ? o.writes : o.reads).size())
      throw untouched_bytes(v);
  for (const view& v : o.views) {
    const bool has_elements =
        std::all_of(v.shape.begin(), v.shape.end(), [](std::int64_t size) { return size > 0; });
    if (!has_elements || v.stride < 1 || v.unit < 1)
      throw refusal("RC7578: tensor {} has a size, a stride or a unit below 1", v.port);
  }
  check_strides(o, f);
  check_first(o, f);
  check_adds(o, f);
  check_types(o, f);
  check_whole_fp8(o, f);
  check_sums(o, f);
  check_scratch(o);
  check_overlaps(o, f);
}

void check_elements(const view& v, const access& a) {
  if (a.type == element_type::bytes)
    throw refusal("RC7579: tensor {} is in bytes without a type; expected elements of a type", v.port);
  if (a.begin % static_cast<std::size_t>(size_of(a.type)) != 0)
    throw refusal(
        "RC7580: tensor {} begins at byte {} of the arena; expected a multiple of {}, the size of an element",
        v.port, a.begin, size_of(a.type));
}

refusal given_in_part(const view& v) {
  return refusal("RC7581: tensor {} is a part of its buffer; expected all of it", v.port);
}

void check_bytes(const op& o, std::size_t expected) {
  if (o.bytes != expected) throw refusal("RC7582: the call has {} bytes; expected {}", o.bytes, expected);
}

refusal not_contiguous() {
  return refusal("RC7583: the tensors of the op are not contiguous; expected one run of bytes");
}

/// The number of results of a collective, without scratch.
static std::size_t results_of(const op& o) {
  const bool has_scratch =
      (o.does == collective_kind::all_to_all || exchanges_slots(o.does)) && o.writes.size() == 2;
  return has_scratch ? 1 : o.writes.size();
}

/// Checks the views of a collective, if it has views: each covers a whole access in one piece.
static void check_views(const op& o) {
  if (o.views.empty()) return;
  std::vector<int> reads(o.reads.size(), 0), writes(results_of(o), 0);
  for (const view& v : o.views) {
    std::vector<int>& of = v.written ? writes : reads;
    if (v.accesses.count != 1 || v.accesses.first < 0 ||
        static_cast<std::size_t>(v.accesses.first) >= of.size())
      throw untouched_bytes(v);
    const auto index = static_cast<std::size_t>(v.accesses.first);
    const access& a = (v.written ? o.writes : o.reads)[index];
    ++of[index];
    check_elements(v, a);
    std::size_t elements = 1;
    for (const std::int64_t size : v.shape) elements *= static_cast<std::size_t>(size);
    const bool is_dense = v.shape.size() < 2 || v.stride == v.shape[1];
    if (v.offset != 0 || v.adds || !is_dense ||
        elements * static_cast<std::size_t>(size_of(a.type)) != a.end - a.begin)
      throw given_in_part(v);
  }
  for (const auto* of : {&reads, &writes})
    if (std::any_of(of->begin(), of->end(), [](int n) { return n != 1; }))
      throw refusal(
          "RC7584: the collective describes some of its tensors twice or not at all; expected once each");
}

namespace {

refusal writes_twice() { return refusal("RC7585: the collective writes two tensors to the same bytes"); }
refusal writes_over_input() { return refusal("RC7586: the collective writes over its input"); }
[[noreturn]] void refuse_scratch(const access& scratch, std::size_t expected) {
  throw refusal("RC7587: the scratch of the collective has {} bytes; expected {}",
                scratch.end - scratch.begin, expected);
}

bool is_apart(const access& x, const access& y) { return x.end <= y.begin || y.end <= x.begin; }

/// Checks the tensors that one call reduces: they are contiguous, have one type, and are reduced in place.
void check_reduced_together(const op& o) {
  std::vector<access> tensors = o.reads;
  std::sort(tensors.begin(), tensors.end(),
            [](const access& x, const access& y) { return x.begin < y.begin; });
  for (std::size_t i = 1; i < tensors.size(); ++i) {
    if (tensors[i].begin != tensors[i - 1].end) throw not_contiguous();
    if (tensors[i].type != tensors[0].type)
      throw refusal("RC7599: the all-reduce adds up tensors of {} and of {} in one call; expected one type",
                    element_type_names[static_cast<int>(tensors[0].type)],
                    element_type_names[static_cast<int>(tensors[i].type)]);
  }
  for (std::size_t i = 0; i < o.reads.size(); ++i)
    if (o.reads[i].begin != o.writes[i].begin || o.reads[i].end != o.writes[i].end)
      throw refusal(
          "RC7588: an all-reduce of several tensors writes to other bytes than it reads; expected it in "
          "place");
}

/// Checks that outputs overlap no other buffer. A member's shard may be at its place in the full tensor.
void check_shards(const op& o, const seat& at) {
  const bool gathers = o.does == collective_kind::all_gather;
  const auto members = static_cast<std::size_t>(at.members), member = static_cast<std::size_t>(at.member);
  for (std::size_t i = 0; i < o.writes.size(); ++i) {
    const access &all = (gathers ? o.writes : o.reads)[i], &own = (gathers ? o.reads : o.writes)[i];
    const std::size_t bytes = own.end - own.begin;
    if (all.end - all.begin != members * bytes)
      throw refusal(
          "RC7589: the collective has {} bytes for the shards of all members; expected {} shards of {}",
          all.end - all.begin, members, bytes);
    const bool is_at_place = own.begin == all.begin + member * bytes;
    for (std::size_t k = 0; k < o.reads.size(); ++k)
      if (!is_apart(o.writes[i], o.reads[k]) && !(k == i && is_at_place))
        throw refusal(
            "RC7590: the collective writes over its input; expected that of the member's own shard, at its "
            "place, only");
    for (std::size_t k = 0; k < i; ++k)
      if (!is_apart(o.writes[i], o.writes[k])) throw writes_twice();
  }
}

/// Checks that the input, the output and the scratch of an all-to-all do not overlap.
void check_exchange(const op& o) {
  if (o.reads.size() != 1 || o.writes.size() != 2 || o.views.size() != 2)
    throw refusal("RC7591: the all-to-all reads {} tensors and writes {}; expected 1, and 1 with scratch",
                  o.reads.size(), o.writes.size());
  const access &from = o.reads[0], &to = o.writes[0], &scratch = o.writes[1];
  if (scratch.end - scratch.begin != o.bytes) refuse_scratch(scratch, o.bytes);
  if (!is_apart(from, to) || !is_apart(from, scratch) || !is_apart(to, scratch)) throw writes_over_input();
}

/// Checks that the two tensors that a shift sends and the two that it receives do not overlap.
void check_shift(const op& o) {
  if (o.reads.size() != 2 || o.writes.size() != 2)
    throw refusal("RC7592: the shift reads {} tensors and writes {}; expected 2 and 2", o.reads.size(),
                  o.writes.size());
  for (std::size_t i = 0; i < 2; ++i) {
    if (o.reads[i].end - o.reads[i].begin != o.writes[i].end - o.writes[i].begin)
      throw refusal("RC7593: the shift sends {} bytes and receives {}; expected the same",
                    o.reads[i].end - o.reads[i].begin, o.writes[i].end - o.writes[i].begin);
    for (const access& r : o.reads)
      if (!is_apart(o.writes[i], r)) throw writes_over_input();
  }
  if (!is_apart(o.writes[0], o.writes[1])) throw writes_twice();
}

/// Checks an exchange of slots: it sends slots into slabs, or takes them out, through scratch of the slabs'
/// size.
void check_slots(const op& o, const seat& at) {
  const bool gathers = o.does == collective_kind::gather_offsets,
             of_offsets = gathers || o.does == collective_kind::share_offsets;
  if (o.reads.size() != (of_offsets ? 1 : 2) || o.writes.size() != 2 ||
      o.views.size() != o.reads.size() + 1 || o.rows < 1)
    throw refusal(
        "RC7594: the exchange of slots reads {} tensors and writes {}, in slabs of {} rows; expected slots "
        "with offsets, or offsets, and scratch",
        o.reads.size(), o.writes.size(), o.rows);
  const access &scratch = o.writes[1],
               &blocks = o.does == collective_kind::from_experts ? o.reads[0] : o.writes[0];
  const std::size_t all = gathers ? o.bytes * static_cast<std::size_t>(at.members) : o.bytes;
  if (scratch.end - scratch.begin != all) refuse_scratch(scratch, all);
  if (blocks.end - blocks.begin != all)
    throw refusal("RC7595: the slabs of the exchange have {} bytes; expected {}", blocks.end - blocks.begin,
                  all);
  if (!of_offsets) {
    const tensor_shape& s = o.views[o.does == collective_kind::from_experts ? 1 : 0].shape;
    if (s.size() != 2 || s[0] != at.members * o.rows)
      throw refusal("RC7596: the exchange has no slabs of {} rows for {} members", o.rows, at.members);
  }
  for (const access& r : o.reads)
    if (!is_apart(r, o.writes[0]) || !is_apart(r, scratch)) throw writes_over_input();
  if (!is_apart(o.writes[0], scratch)) throw writes_over_input();
}

}  // namespace

void check_layout(const op& o, const seat& at) {
  check_views(o);
  if (exchanges_slots(o.does)) return check_slots(o, at);
  if (o.reads.empty() || o.reads.size() != results_of(o))
    throw refusal(
        "RC7597: the collective reads {} tensors and writes {}; expected the same number, and at least 1",
        o.reads.size(), o.writes.size());
  const bool scatters = o.does == collective_kind::reduce_scatter;
  std::size_t own = 0;
  for (const access& a : scatters ? o.writes : o.reads) own += a.end - a.begin;
  check_bytes(o, own);
  if (scatters || o.does == collective_kind::all_gather) return check_shards(o, at);
  if (o.does == collective_kind::all_to_all) return check_exchange(o);
  if (is_shift(o.does)) return check_shift(o);
  if (o.reads.size() > 1) return check_reduced_together(o);
  const access &from = o.reads[0], &to = o.writes[0];
  if (!is_apart(from, to) && (from.begin != to.begin || from.end != to.end))
    throw refusal(
        "RC7598: the collective writes over a part of its input; expected it in place, or to bytes that it "
        "does not read");
}

}  // namespace rankc::codegen::algebra
