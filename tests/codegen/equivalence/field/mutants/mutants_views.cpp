// SPDX-License-Identifier: Apache-2.0
// Faults in a kernel's arguments: exchanged operands, another place, another size or another part.
#include "mutator.hpp"

namespace field {

namespace {

/// Change a view that satisfies a condition, on this rank or on all that have the op.
template <class Suits, class Change>
fault change_view(mutator& m, const char* kind, Suits suits, Change change) {
  if (!m.turn_to([&](const op& o) {
        return std::any_of(o.views.begin(), o.views.end(), [&](const view& v) { return suits(o, v); });
      }))
    return {};
  std::vector<std::size_t> found;
  for (std::size_t v = 0; v < m.at().views.size(); ++v)
    if (suits(m.at(), m.at().views[v])) found.push_back(v);
  const std::size_t v = m.one_of(found);
  const std::string port(m.at().views[v].port);
  return m.done(kind, " " + port, m.change([&](op& o) {
    if (v >= o.views.size()) return false;
    const view before = o.views[v];
    change(o, o.views[v]);
    return !(o.views[v] == before);
  }));
}
bool any(const op&, const view&) { return true; }

fault exchange_operands(mutator& m) {
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  const auto find = [&](const op& o) {
    pairs.clear();
    for (std::size_t a = 0; a < o.views.size(); ++a)
      for (std::size_t b = a + 1; b < o.views.size(); ++b)
        if (o.views[a].written == o.views[b].written && o.views[a].shape == o.views[b].shape)
          pairs.push_back({a, b});
    return !pairs.empty();
  };
  if (!m.turn_to(find)) return {};
  find(m.at());
  const auto [a, b] = m.one_of(pairs);
  const std::string ports =
      " " + std::string(m.at().views[a].port) + " and " + std::string(m.at().views[b].port);
  return m.done("exchange operands", ports, m.change([&, a = a, b = b](op& o) {
    if (b >= o.views.size()) return false;
    std::swap(o.views[a].accesses, o.views[b].accesses);
    std::swap(o.views[a].offset, o.views[b].offset);
    std::swap(o.views[a].stride, o.views[b].stride);
    return true;
  }));
}
fault flip_adds(mutator& m) {
  if (!m.turn_to([](const op& o) {
        return std::any_of(o.views.begin(), o.views.end(), [](const view& v) { return v.written; });
      }))
    return {};
  std::vector<std::size_t> written;
  for (std::size_t v = 0; v < m.at().views.size(); ++v)
    if (m.at().views[v].written) written.push_back(v);
  const std::size_t v = m.one_of(written);
  return m.done("adds", " " + std::string(m.at().views[v].port), m.change([&](op& o) {
    return v < o.views.size() && (o.views[v].adds = !o.views[v].adds, true);
  }));
}
fault shift_offset(mutator& m) {
  const std::size_t by = std::vector<std::size_t>{4, 8, 16, 64}[static_cast<std::size_t>(m.below(4))];
  const bool back = m.below(2);
  return change_view(m, "offset", any, [&](const op&, view& v) {
    v.offset = back ? v.offset - std::min(v.offset, by) : v.offset + by;
  });
}
fault change_shape(mutator& m) {
  const int way = m.below(4);
  return change_view(m, "shape", any, [&](const op&, view& v) {
    if (v.shape.empty()) return;
    std::int64_t &first = v.shape.dim[0], &last = v.shape.dim[v.shape.ndim - 1];
    if (way == 0) std::swap(first, last);
    else if (way == 1) first /= 2;
    else if (way == 2) last -= 1;
    else first += 1;
  });
}
/// Shrink a size of the op in all its operands, so that they still fit each other.
fault shrink_size(mutator& m) {
  if (!m.turn_to([](const op& o) { return o.kind == op_kind::compute && !o.views.empty(); })) return {};
  const view& v = m.one_of(m.at().views);
  if (v.shape.empty()) return {};
  const std::int64_t old = v.shape[static_cast<std::size_t>(m.below(static_cast<int>(v.shape.size())))],
                     by = m.below(2) ? old / 2 : 1;
  return m.done("size", " " + std::to_string(old) + " less " + std::to_string(by), m.change([&](op& o) {
    bool changed = false;
    for (view& w : o.views)
      for (std::size_t d = 0; d < w.shape.size(); ++d)
        if (w.shape[d] == old) {
          if (d + 1 == w.shape.size() && w.stride == old) w.stride -= by;
          w.shape.dim[d] -= by;
          changed = true;
        }
    if (o.rows * o.seq == old && o.rows > 1 && by == old / 2) o.rows /= 2;
    return changed;
  }));
}
fault change_unit(mutator& m) {
  const int way = m.below(3);
  const auto has_unit = [all = m.below(4) == 0](const op&, const view& v) { return all || v.unit > 1; };
  return change_view(m, "unit", has_unit, [&](const op&, view& v) {
    if (way == 0) v.unit *= 2;
    else if (way == 1) v.unit = std::max<std::int64_t>(1, v.unit / 2);
    else v.unit = 1;
  });
}
/// The kind of rows that must agree on a unit, such as a forward and its backward.
std::string_view kind_of(std::string_view row) {
  for (const std::string_view kind : {"attention", "keep_groups", "balance_loss", "z_loss", "statistics"})
    if (row.find(kind) != std::string_view::npos) return kind;
  return row;
}
/// All ops of a kind use units twice as large: half as many heads, and their statistics.
fault double_units(mutator& m) {
  const auto has_units = [](const op& o) {
    return computes(o) &&
           std::any_of(o.views.begin(), o.views.end(), [](const view& v) { return v.unit > 1; });
  };
  if (!m.turn_to(has_units)) return {};
  const std::string_view kind = kind_of(m.at().row);
  std::int64_t unit = 1, count = 0;
  for (const view& v : m.at().views)
    if (v.unit > 1 && v.shape.size() == 2) {
      unit = v.unit;
      count = v.shape[1] / v.unit;
    }
  if (count < 2 || count % 2) return {};
  const std::string text = m.text() + " and all of its kind";
  for (rank_program& r : m.p.ranks)
    for (op& o : r.ops) {
      if (kind_of(o.row) != kind) continue;
      for (view& v : o.views) {
        if (v.unit == unit) v.unit *= 2;
        const bool is_statistic = v.port.starts_with("lse") || v.port == "statistics";
        if (!is_statistic || v.shape.size() != 2 || v.shape[1] != count) continue;
        v.shape.dim[1] /= 2;
        v.stride = v.shape[1];
      }
    }
  return {"units of a kind of ops", text};
}
fault change_stride(mutator& m) {
  const int by = m.below(2) ? 1 : -1;
  const auto has_stride = [all = m.below(4) == 0](const op&, const view& v) {
    return all || (v.shape.size() == 2 && v.stride != v.shape[1]);
  };
  return change_view(m, "stride", has_stride, [&](const op&, view& v) { v.stride += by; });
}
fault change_first(mutator& m) {
  const int way = m.below(3);
  const auto has_first = [all = m.below(4) == 0](const op& o, const view& v) {
    const bool of_table = o.row.starts_with("embedding") && v.port.ends_with("table"),
               of_tokens = o.row.starts_with("position") && !v.port.ends_with("table");
    return all || v.first != 0 || of_table || of_tokens || v.port.ends_with("logits");
  };
  return change_view(m, "first", has_first, [&](const op&, view& v) {
    if (way == 0) v.first = v.shape.empty() ? 0 : v.shape[0];
    else if (way == 1) v.first = 0;
    else ++v.first;
  });
}
fault take_another_access(mutator& m) {
  const int drawn = m.below(8);
  const bool count = m.below(2);
  return change_view(m, "access", any, [&](const op& o, view& v) {
    const int all = static_cast<int>((v.written ? o.writes : o.reads).size());
    if (count) v.accesses.count = 1 + drawn % std::max(1, all);
    else v.accesses.first = drawn % std::max(1, all);
  });
}
fault rename_port(mutator& m) {
  if (!m.turn_to([](const op& o) { return o.views.size() > 1; })) return {};
  const std::string_view other = m.one_of(m.at().views).port;
  return change_view(m, "port", any, [&](const op&, view& v) { v.port = other; });
}
fault leave_out_view(mutator& m) {
  if (!m.turn_to([](const op& o) { return !o.views.empty(); })) return {};
  const auto v = static_cast<std::size_t>(m.below(static_cast<int>(m.at().views.size())));
  return m.done("leave out a view", " " + std::string(m.at().views[v].port), m.change([&](op& o) {
    return v < o.views.size() && (o.views.erase(o.views.begin() + static_cast<std::ptrdiff_t>(v)), true);
  }));
}
/// Shrink an access, or make it empty.
fault empty_access(mutator& m) {
  if (!m.turn_to([](const op& o) { return !o.reads.empty() || !o.writes.empty(); })) return {};
  const bool all = m.below(2), written = m.at().reads.empty() || (!m.at().writes.empty() && m.below(2));
  const auto k =
      static_cast<std::size_t>(m.below(static_cast<int>((written ? m.at().writes : m.at().reads).size())));
  return m.done("fewer bytes", std::string(written ? " write " : " read ") + std::to_string(k),
                m.change([&](op& o) {
                  auto& list = written ? o.writes : o.reads;
                  if (k >= list.size()) return false;
                  list[k].end = all ? list[k].begin : list[k].begin + (list[k].end - list[k].begin) / 2;
                  return true;
                }));
}

}  // namespace

/// A router's bias moves by another rule, or a weight moves like a bias.
fault change_balance(mutator& m) {
  const bool of_bias = m.below(4) > 0, of_rate = m.below(2);
  const auto suits = [&](const op&, const view& v) {
    return of_bias ? v.balances.any() : v.port.ends_with("weight");
  };
  return change_view(m, "balance", suits, [&](const op&, view& v) {
    if (of_rate) v.balances.rate = 2 * v.balances.rate + 0.01;
    else v.balances.mean += 1;
  });
}

const std::vector<fault_kind> faults_of_views{flip_adds,   shift_offset,   change_shape, shrink_size,
                                              change_unit, change_stride,  change_first, take_another_access,
                                              rename_port, leave_out_view, empty_access, change_balance};
const std::vector<fault_kind> edits_of_views{exchange_operands, double_units};

}  // namespace field
