// SPDX-License-Identifier: Apache-2.0
// Attention with a window, a softcap, a scale and value heads of another size than key heads, over whole
// sequences, over chunks and around a ring, with and without documents: outputs and gradients against plain
// loops.
#include "workspace.hpp"

#include <rankc/contract/kernel_scratch.hpp>
#include <rankc/runtime/chunks.hpp>

namespace attention_setting_test {

using namespace rankc::test;
using rankc::attention_setting, rankc::runtime::chunks;
namespace host = rankc::host;

namespace {

constexpr int rows = 2, heads = 4, kv_heads = 2, dim = 4, width = heads * dim, kv_width = kv_heads * dim;

struct result {
  values o, dq, dk, dv;
  result(int seq, int value_dim)
      : o(static_cast<std::size_t>(rows) * seq * heads * value_dim),
        dq(static_cast<std::size_t>(rows) * seq * width),
        dk(static_cast<std::size_t>(rows) * seq * kv_width),
        dv(static_cast<std::size_t>(rows) * seq * kv_heads * value_dim) {}
};

/// The operands of one case. Documents begin at multiples of 7 and at 290.
struct problem {
  int seq;
  attention_setting by;
  bool documents;
  int value_dim, o_width = heads * value_dim, v_width = kv_heads * value_dim;
  values q, k, v, dout;
  ids starts;

  problem(int n, const attention_setting& s, bool of_documents, int of_value = dim)
      : seq(n),
        by(s),
        documents(of_documents),
        value_dim(of_value),
        starts(static_cast<std::size_t>(rows) * n) {
    const std::size_t tokens = static_cast<std::size_t>(rows) * seq;
    q = random_values(tokens * width, 1);
    k = random_values(tokens * kv_width, 2);
    v = random_values(tokens * v_width, 3);
    dout = random_values(tokens * o_width, 4);
    for (int row = 0; row < rows; ++row)
      for (int i = 0; i < seq; ++i) starts[row * seq + i] = i < 290 ? i / (7 * 20) * (7 * 20) : 290;
  }

  result in_loops() const {
    result r(seq, value_dim);
    const double scale = by.scale != 0 ? by.scale : 1 / std::sqrt(dim);
    values p(seq), slope(seq), dp(seq);
    for (int row = 0; row < rows; ++row)
      for (int h = 0; h < heads; ++h)
        for (int i = 0; i < seq; ++i) {
          const auto query = [&](int c) { return ((row * seq + i) * heads + h) * dim + c; };
          const auto kv_head = [&](int j) { return (row * seq + j) * kv_heads + h / (heads / kv_heads); };
          const auto key = [&](int j, int c) { return kv_head(j) * dim + c; };
          const auto value = [&](int j, int c) { return kv_head(j) * value_dim + c; };
          const auto output = [&](int c) { return ((row * seq + i) * heads + h) * value_dim + c; };
          int first = documents ? starts[row * seq + i] : 0;
          if (by.window > 0) first = std::max(first, i - by.window + 1);
          const int last = by.last_key(i, seq);
          double total = 0, delta = 0;
          for (int j = first; j <= last; ++j) {
            double score = 0;
            for (int c = 0; c < dim; ++c) score += scale * q[query(c)] * k[key(j, c)];
            const double t = std::tanh(score / by.softcap);
            slope[j] = by.softcap != 0 ? 1 - t * t : 1;
            total += p[j] = std::exp(by.softcap != 0 ? by.softcap * t : score);
          }
          for (int j = first; j <= last; ++j) {
            p[j] /= total;
            dp[j] = 0;
            for (int c = 0; c < value_dim; ++c) {
              r.o[output(c)] += p[j] * v[value(j, c)];
              dp[j] += dout[output(c)] * v[value(j, c)];
              r.dv[value(j, c)] += p[j] * dout[output(c)];
            }
            delta += p[j] * dp[j];
          }
          for (int j = first; j <= last; ++j)
            for (int c = 0; c < dim; ++c) {
              const double ds = scale * p[j] * (dp[j] - delta) * slope[j];
              r.dq[query(c)] += ds * k[key(j, c)];
              r.dk[key(j, c)] += ds * q[query(c)];
            }
        }
    return r;
  }
};

template <class T>
result whole(const problem& p) {
  workspace<T> space;
  const int seq = p.seq, tokens = rows * seq;
  const auto window = static_cast<std::size_t>(p.by.window);
  const at q = space.put(p.q), k = space.put(p.k), v = space.put(p.v), dout = space.put(p.dout),
           starts = space.put(p.starts), o = space.room(p.dout.size()), lse = space.room(tokens * heads),
           scratch = space.room(host::attention_scratch(seq, seq, 1, window)),
           more = space.room(host::attention_grad_scratch(seq, seq, 1, window)), dq = space.room(p.q.size()),
           dk = space.room(p.k.size()), dv = space.room(p.v.size());
  if (p.documents) {
    host::document_attention<T>(space.lane(), o, lse, scratch, q, k, v, starts, rows, seq, heads, kv_heads,
                                dim, p.value_dim, p.by);
    host::document_attention_grad<T>(space.lane(), dq, dk, dv, more, dout, q, k, v, o, lse, starts, rows, seq,
                                     heads, kv_heads, dim, p.value_dim, p.by);
  } else {
    host::attention<T>(space.lane(), o, lse, scratch, q, k, v, rows, seq, heads, kv_heads, dim, p.value_dim,
                       p.by);
    host::attention_grad<T>(space.lane(), dq, dk, dv, more, dout, q, k, v, o, lse, rows, seq, heads, kv_heads,
                            dim, p.value_dim, p.by);
  }
  result r(seq, p.value_dim);
  r.o = space.get(o, r.o.size());
  r.dq = space.get(dq, r.dq.size());
  r.dk = space.get(dk, r.dk.size());
  r.dv = space.get(dv, r.dv.size());
  return r;
}

/// A cp rank's tokens.
struct shard {
  chunks has;
  int rows_of_all(int row, int place) const { return row * has.seq + has.position(place); }
  values of(const values& all, int columns) const {
    values own;
    for (int row = 0; row < rows; ++row)
      for (int place = 0; place < has.count(); ++place)
        for (int c = 0; c < columns; ++c) own.push_back(all[rows_of_all(row, place) * columns + c]);
    return own;
  }
  void add(const values& own, values& to, int columns) const {
    for (int row = 0, i = 0; row < rows; ++row)
      for (int place = 0; place < has.count(); ++place)
        for (int c = 0; c < columns; ++c) to[rows_of_all(row, place) * columns + c] += own[i++];
  }
};
/// The keys of all ranks, rank by rank.
values gathered(const values& all, int seq, int ranks, int columns) {
  values out;
  for (int rank = 0; rank < ranks; ++rank) {
    const values own = shard{{seq, ranks, rank}}.of(all, columns);
    out.insert(out.end(), own.begin(), own.end());
  }
  return out;
}

template <class T>
result in_chunks(const problem& p, int ranks) {
  result r(p.seq, p.value_dim);
  const int seq = p.seq, own = seq / ranks, first_of_rank = rows * own;
  const auto window = static_cast<std::size_t>(p.by.window);
  for (int rank = 0; rank < ranks; ++rank) {
    const shard s{{seq, ranks, rank}};
    workspace<T> space;
    const std::size_t queries = r.dq.size() / ranks, outputs = r.o.size() / ranks;
    const at q = space.put(s.of(p.q, width)), k = space.put(gathered(p.k, seq, ranks, kv_width)),
             v = space.put(gathered(p.v, seq, ranks, p.v_width)), dout = space.put(s.of(p.dout, p.o_width)),
             starts = space.put(p.starts), o = space.room(outputs), lse = space.room(rows * own * heads),
             scratch = space.room(host::attention_scratch(own, seq, 1, window)),
             more = space.room(host::attention_grad_scratch(own, seq, 1, window)), dq = space.room(queries),
             dk = space.room(p.k.size()), dv = space.room(p.v.size());
    const int first = rank * first_of_rank;
    if (p.documents) {
      host::document_chunk_attention<T>(space.lane(), o, lse, scratch, q, k, v, starts, rows, seq, heads,
                                        kv_heads, dim, p.value_dim, ranks, first, p.by);
      host::document_chunk_attention_grad<T>(space.lane(), dq, dk, dv, more, dout, q, k, v, o, lse, starts,
                                             rows, seq, heads, kv_heads, dim, p.value_dim, ranks, first,
                                             p.by);
    } else {
      host::chunk_attention<T>(space.lane(), o, lse, scratch, q, k, v, rows, seq, heads, kv_heads, dim,
                               p.value_dim, ranks, first, p.by);
      host::chunk_attention_grad<T>(space.lane(), dq, dk, dv, more, dout, q, k, v, o, lse, rows, seq, heads,
                                    kv_heads, dim, p.value_dim, ranks, first, p.by);
    }
    s.add(space.get(o, outputs), r.o, p.o_width);
    s.add(space.get(dq, queries), r.dq, width);
    const values all_dk = space.get(dk, p.k.size()), all_dv = space.get(dv, p.v.size());
    for (int of = 0; of < ranks; ++of) {
      const auto part = [&](const values& all) {
        const auto each = static_cast<std::ptrdiff_t>(all.size()) / ranks;
        return values(all.begin() + of * each, all.begin() + (of + 1) * each);
      };
      shard{{seq, ranks, of}}.add(part(all_dk), r.dk, kv_width);
      shard{{seq, ranks, of}}.add(part(all_dv), r.dv, p.v_width);
    }
  }
  return r;
}

template <class T>
result around_ring(const problem& p, int ranks) {
  result r(p.seq, p.value_dim);
  const int seq = p.seq, own = seq / ranks;
  for (int rank = 0; rank < ranks; ++rank) {
    const shard s{{seq, ranks, rank}};
    workspace<T> space;
    const std::size_t queries = r.dq.size() / ranks, outputs = r.o.size() / ranks, keys = p.k.size() / ranks,
                      sums = rows * own * heads;
    const int first = rank * rows * own;
    const at q = space.put(s.of(p.q, width)), dout = space.put(s.of(p.dout, p.o_width)),
             starts = space.put(p.starts), o = space.room(outputs), lse = space.room(sums),
             o_more = space.room(outputs), lse_more = space.room(sums),
             scratch = space.room(host::attention_scratch(own, own, 1)),
             more = space.room(host::attention_grad_scratch(own, own, 1));
    std::vector<at> k, v;
    const auto holder = [&](int step) { return shard{{seq, ranks, (rank - step + ranks) % ranks}}; };
    for (int step = 0; step < ranks; ++step) {
      k.push_back(space.put(holder(step).of(p.k, kv_width)));
      v.push_back(space.put(holder(step).of(p.v, p.v_width)));
      const at to = step == 0 ? o : o_more, sums_to = step == 0 ? lse : lse_more;
      if (p.documents)
        host::document_ring_attention<T>(space.lane(), to, sums_to, scratch, q, k[step], v[step], starts,
                                         rows, seq, heads, kv_heads, dim, p.value_dim, ranks, step, first,
                                         p.by);
      else
        host::ring_attention<T>(space.lane(), to, sums_to, scratch, q, k[step], v[step], rows, seq, heads,
                                kv_heads, dim, p.value_dim, ranks, step, first, p.by);
      if (step > 0)
        host::merge_attention<T>(space.lane(), o, lse, o, lse, o_more, lse_more, rows, rows * own, heads,
                                 p.value_dim);
    }
    s.add(space.get(o, outputs), r.o, p.o_width);
    for (int step = 0; step < ranks; ++step) {
      const at dq = space.room(queries), dk = space.room(keys), dv = space.room(p.v.size() / ranks);
      if (p.documents)
        host::document_ring_attention_grad<T>(space.lane(), dq, dk, dv, more, dout, q, k[step], v[step], o,
                                              lse, starts, rows, seq, heads, kv_heads, dim, p.value_dim,
                                              ranks, step, first, p.by);
      else
        host::ring_attention_grad<T>(space.lane(), dq, dk, dv, more, dout, q, k[step], v[step], o, lse, rows,
                                     seq, heads, kv_heads, dim, p.value_dim, ranks, step, first, p.by);
      s.add(space.get(dq, queries), r.dq, width);
      holder(step).add(space.get(dk, keys), r.dk, kv_width);
      holder(step).add(space.get(dv, p.v.size() / ranks), r.dv, p.v_width);
    }
  }
  return r;
}

/// The largest difference of an element, relative to the larger of 1 and the expected element.
double error_of(const values& got, const values& want) {
  REQUIRE(got.size() == want.size());
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double error = std::abs(got[i] - want[i]) / std::max(1.0, std::abs(want[i]));
    worst = error <= worst ? worst : error;  // true for NaN, too
  }
  return worst;
}
void check_near(const result& got, const result& want, double tolerance) {
  CHECK(error_of(got.o, want.o) <= tolerance);
  CHECK(error_of(got.dq, want.dq) <= tolerance);
  CHECK(error_of(got.dk, want.dk) <= tolerance);
  CHECK(error_of(got.dv, want.dv) <= tolerance);
}

// Windows of one key, inside a block of queries, of more than a block, and longer than the sequence; and
// non-causal attention.
constexpr attention_setting settings[]{{.window = 1},
                                       {.window = 5},
                                       {.window = 200},
                                       {.window = 1000},
                                       {.softcap = 0.5},
                                       {.scale = 0.3},
                                       {.window = 130, .softcap = 0.7, .scale = 1.5},
                                       {.causal = false},
                                       {.softcap = 0.7, .scale = 1.5, .causal = false}};

}  // namespace

TEST_CASE_TEMPLATE("attention with a window, a softcap and a scale equals plain loops on every layout", T,
                   float, double) {
  constexpr double limit = 4 * tolerance<T>;
  for (const attention_setting& by : settings)
    for (const bool documents : {false, true})
      for (const int seq : {12, 600}) {
        if (documents && !by.causal) continue;  // the language refuses it
        CAPTURE(by.causal);
        CAPTURE(by.window);
        CAPTURE(by.softcap);
        CAPTURE(by.scale);
        CAPTURE(documents);
        CAPTURE(seq);
        const problem p(seq, by, documents);
        const result want = p.in_loops();
        check_near(whole<T>(p), want, limit);
        check_near(in_chunks<T>(p, 2), want, limit);
        check_near(around_ring<T>(p, 2), want, limit);
        check_near(around_ring<T>(p, 3), want, limit);
      }
}

TEST_CASE_TEMPLATE(
    "attention with value heads of another size than key heads equals plain loops on every layout", T, float,
    double) {
  constexpr double limit = 4 * tolerance<T>;
  for (const int value_dim : {1, 3, 7})
    for (const attention_setting& by :
         {attention_setting{}, {.window = 130, .softcap = 0.7, .scale = 1.5}, {.causal = false}})
      for (const bool documents : {false, true}) {
        if (documents && !by.causal) continue;  // the language refuses it
        CAPTURE(value_dim);
        CAPTURE(by.window);
        CAPTURE(documents);
        const problem p(300, by, documents, value_dim);
        const result want = p.in_loops();
        check_near(whole<T>(p), want, limit);
        check_near(in_chunks<T>(p, 2), want, limit);
        check_near(around_ring<T>(p, 2), want, limit);
        check_near(around_ring<T>(p, 3), want, limit);
      }
}

TEST_CASE("a window as long as the sequence, and a scale of 1 / sqrt(dim), change no bit") {
  const result plain = whole<double>(problem(300, {}, false)),
               same = whole<double>(problem(300, {.window = 300, .scale = 0.5}, false));
  CHECK(plain.o == same.o);
  CHECK(plain.dq == same.dq);
  CHECK(plain.dv == same.dv);
}

TEST_CASE("the scratch of attention grows with the window, not with the sequence") {
  CHECK(host::attention_scratch(8192, 8192, 4, 512) == host::attention_scratch(1024, 1024, 4, 512));
  CHECK(host::attention_scratch(8192, 8192, 4, 512) < host::attention_scratch(1024, 1024, 4));
  CHECK(host::attention_scratch(64, 64, 4, 512) == host::attention_scratch(64, 64, 4));
}

}  // namespace attention_setting_test
