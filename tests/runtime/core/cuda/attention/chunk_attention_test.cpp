// SPDX-License-Identifier: Apache-2.0
// Attention over chunks of sequences, by every rank in turn, against attention over whole sequences in f64:
// outputs and dq of each rank's tokens, and dk and dv summed over the ranks.
#include "../bench.hpp"
#include "random_starts.hpp"

namespace rankc::runtime::cuda::test::chunk_attention_test {
namespace {

struct shape {
  int rows, seq, ranks, heads, kv_heads, dim;
  attention_setting by{};
  int documents = 0;  // mean length; 0: one document
  int value_dim = 0;  // 0: dim
  int values() const { return value_dim == 0 ? dim : value_dim; }
  std::vector<std::int32_t> starts() const {
    return random_starts(rows, seq, documents == 0 ? seq : documents, 7);
  }
};
// For rankc's own kernels. In bf16, cuDNN takes chunks of a multiple of 128 tokens, and the Hopper kernels
// take heads of 64; in a ring they take chunks of 64 tokens as well.
constexpr shape shapes[] = {{2, 24, 2, 2, 1, 16},
                            {1, 160, 4, 2, 2, 40},
                            {2, 512, 2, 4, 2, 64},
                            {1, 1024, 4, 4, 1, 128},
                            {2, 768, 3, 2, 2, 32},
                            {1, 1536, 3, 2, 1, 64},
                            {2, 384, 3, 2, 1, 64},
                            // Windows inside a chunk, and windows that some steps of a ring do not reach.
                            {2, 24, 2, 2, 1, 16, {.window = 3}},
                            {1, 1024, 4, 4, 1, 128, {.window = 70}},
                            {2, 512, 2, 4, 2, 64, {.window = 200, .softcap = 1.5}},
                            {2, 768, 3, 2, 2, 32, {.scale = 0.1}},
                            {2, 512, 2, 4, 2, 64, {.window = 200}},
                            // Documents within a chunk, and over several.
                            {2, 24, 2, 2, 1, 16, {}, 5},
                            {2, 512, 2, 4, 2, 64, {}, 60},
                            {1, 1024, 4, 4, 1, 128, {}, 300},
                            {1, 1536, 3, 2, 1, 64, {}, 700},
                            {2, 768, 3, 2, 1, 128, {.window = 150}, 200},
                            {2, 24, 2, 2, 1, 16, {.causal = false}},
                            {1, 1024, 4, 4, 1, 128, {.causal = false}},
                            {2, 512, 2, 4, 2, 64, {.causal = false}},
                            // Value heads of another size than key heads.
                            {2, 24, 2, 2, 1, 16, {}, 0, 40},
                            {2, 512, 2, 4, 2, 64, {}, 0, 32},
                            {1, 1024, 4, 4, 1, 64, {.window = 70}, 300, 128}};

/// Rows of `width` elements for all tokens, in a rank's order, or gathered in the ranks' order.
struct order {
  shape s;
  std::size_t of(int row, int position, int width) const {
    return (static_cast<std::size_t>(row) * s.seq + position) * width;
  }
  numbers of_rank(const numbers& all, int rank, int width) const {
    const runtime::chunks has{s.seq, s.ranks, rank};
    numbers out;
    for (int row = 0; row < s.rows; ++row)
      for (int place = 0; place < has.count(); ++place) {
        const auto at = all.begin() + static_cast<std::ptrdiff_t>(of(row, has.position(place), width));
        out.insert(out.end(), at, at + width);
      }
    return out;
  }
  numbers gathered(const numbers& all, int width) const {
    numbers out;
    for (int rank = 0; rank < s.ranks; ++rank)
      for (const double x : of_rank(all, rank, width)) out.push_back(x);
    return out;
  }
};

/// Attention and its gradients in f64, one score at a time.
struct reference {
  numbers o, lse, dq, dk, dv;  // lse (rows, seq, heads)
  reference(const shape& s, const numbers& q, const numbers& k, const numbers& v, const numbers& dout)
      : o(dout.size(), 0.0),
        lse(static_cast<std::size_t>(s.rows) * s.seq * s.heads),
        dq(q.size(), 0.0),
        dk(k.size(), 0.0),
        dv(v.size(), 0.0) {
    const double scale = s.by.scale != 0 ? s.by.scale : 1.0 / std::sqrt(static_cast<double>(s.dim));
    const std::vector<std::int32_t> starts = s.documents > 0 ? s.starts() : std::vector<std::int32_t>();
    const auto at = [&](int row, int t, int heads, int h) {
      return (static_cast<std::size_t>(row) * s.seq + t) * heads + h;
    };
    for (int row = 0; row < s.rows; ++row)
      for (int h = 0; h < s.heads; ++h)
        for (int t = 0; t < s.seq; ++t) {
          const std::size_t i = at(row, t, s.heads, h) * s.dim, out = at(row, t, s.heads, h) * s.values();
          const auto kv_head = [&](int u) { return at(row, u, s.kv_heads, h / (s.heads / s.kv_heads)); };
          const auto key = [&](int u) { return kv_head(u) * s.dim; };
          const auto value = [&](int u) { return kv_head(u) * s.values(); };
          const int start = s.documents > 0 ? starts[static_cast<std::size_t>(row) * s.seq + t] : 0,
                    first = s.by.window > 0 ? std::max(start, t - s.by.window + 1) : start,
                    last = s.by.last_key(t, s.seq);
          numbers p(last + 1, 0.0), dp(last + 1, 0.0), slope(last + 1, 1.0);
          double total = 0, delta = 0;
          for (int u = first; u <= last; ++u) {
            for (int d = 0; d < s.dim; ++d) p[u] += scale * q[i + d] * k[key(u) + d];
            if (s.by.softcap != 0) {
              const double x = std::tanh(p[u] / s.by.softcap);
              p[u] = s.by.softcap * x;
              slope[u] = 1 - x * x;
            }
            total += p[u] = std::exp(p[u]);
          }
          lse[(static_cast<std::size_t>(row) * s.seq + t) * s.heads + h] = std::log(total);
          for (int u = first; u <= last; ++u) {
            p[u] /= total;
            for (int d = 0; d < s.values(); ++d) {
              o[out + d] += p[u] * v[value(u) + d];
              dp[u] += dout[out + d] * v[value(u) + d];
              dv[value(u) + d] += p[u] * dout[out + d];
            }
            delta += p[u] * dp[u];
          }
          for (int u = first; u <= last; ++u)
            for (int d = 0; d < s.dim; ++d) {
              dq[i + d] += scale * p[u] * (dp[u] - delta) * slope[u] * k[key(u) + d];
              dk[key(u) + d] += scale * p[u] * (dp[u] - delta) * slope[u] * q[i + d];
            }
        }
  }
};

/// (rows, heads, tokens) as (rows, tokens, heads).
numbers tokens_first(const numbers& x, int rows, int heads, int tokens) {
  numbers out(x.size());
  for (int row = 0; row < rows; ++row)
    for (int h = 0; h < heads; ++h)
      for (int t = 0; t < tokens; ++t)
        out[(static_cast<std::size_t>(row) * tokens + t) * heads + h] =
            x[(static_cast<std::size_t>(row) * heads + h) * tokens + t];
  return out;
}

TEST_CASE_TEMPLATE("attention of chunks and its gradients are those of whole sequences", T, float, bf16) {
  constexpr bool f32 = std::is_same_v<T, float>;
  for (const bool deterministic : {false, true})
    for (const shape s : shapes) {
      CAPTURE(deterministic);
      CAPTURE(s.seq);
      CAPTURE(s.ranks);
      const int width = s.heads * s.dim, k_width = s.kv_heads * s.dim, v_width = s.kv_heads * s.values(),
                o_width = s.heads * s.values(), count = s.seq / s.ranks;
      const std::size_t tokens = static_cast<std::size_t>(s.rows) * s.seq;
      const numbers q = random_numbers<T>(tokens * width, 1.5, 1),
                    k = random_numbers<T>(tokens * k_width, 1.5, 2),
                    v = random_numbers<T>(tokens * v_width, 1, 3),
                    dout = random_numbers<T>(tokens * o_width, 1, 4);
      const reference wanted(s, q, k, v, dout);
      const order by{s};
      numbers dk(k.size(), 0.0), dv(v.size(), 0.0);  // in the gathered order
      for (int rank = 0; rank < s.ranks; ++rank) {
        CAPTURE(rank);
        bench b;
        description about = *b.of().about;
        about.deterministic = deterministic;
        b.of().about = &about;
        const std::size_t own = tokens / s.ranks;
        const attention_shape planned{s.rows, count,      s.heads,   s.kv_heads,
                                      s.dim,  s.values(), sizeof(T), deterministic};
        const at at_q = b.put<T>(by.of_rank(q, rank, width)), at_k = b.put<T>(by.gathered(k, k_width)),
                 at_v = b.put<T>(by.gathered(v, v_width)),
                 at_dout = b.put<T>(by.of_rank(dout, rank, o_width)), o = b.room<T>(own * o_width),
                 lse = b.room<float>(own * s.heads), dq = b.room<T>(own * width), at_dk = b.room<T>(k.size()),
                 at_dv = b.room<T>(v.size()),
                 scratch = b.room<float>(chunk_attention_scratch(planned) / sizeof(float) + 1),
                 grad_scratch = b.room<float>((s.documents > 0 ? document_attention_grad_scratch(planned)
                                                               : chunk_attention_grad_scratch(planned)) /
                                                  sizeof(float) +
                                              1);
        const int first = rank * static_cast<int>(own);
        if (s.documents > 0) {
          const at starts = b.put(s.starts());
          document_chunk_attention<T>(b.on(), o, lse, scratch, at_q, at_k, at_v, starts, s.rows, s.seq,
                                      s.heads, s.kv_heads, s.dim, s.values(), width, k_width, v_width,
                                      s.ranks, first, s.by);
          document_chunk_attention_grad<T>(b.on(), dq, at_dk, at_dv, grad_scratch, at_dout, at_q, at_k, at_v,
                                           o, lse, starts, s.rows, s.seq, s.heads, s.kv_heads, s.dim,
                                           s.values(), width, k_width, v_width, s.ranks, first, s.by);
        } else {
          chunk_attention<T>(b.on(), o, lse, scratch, at_q, at_k, at_v, s.rows, s.seq, s.heads, s.kv_heads,
                             s.dim, s.values(), width, k_width, v_width, s.ranks, first, s.by);
          chunk_attention_grad<T>(b.on(), dq, at_dk, at_dv, grad_scratch, at_dout, at_q, at_k, at_v, o, lse,
                                  s.rows, s.seq, s.heads, s.kv_heads, s.dim, s.values(), width, k_width,
                                  v_width, s.ranks, first, s.by);
        }
        check_close("lse", tokens_first(b.take<float>(lse, own * s.heads), s.rows, s.heads, count),
                    by.of_rank(wanted.lse, rank, s.heads), 1e-5, 2e-5);
        // Each block's output is rounded before it is merged.
        check_close("o", b.take<T>(o, own * o_width), by.of_rank(wanted.o, rank, o_width), f32 ? 1e-5 : 2e-2,
                    f32 ? 8e-6 : 8e-3);
        check_close("dq", b.take<T>(dq, own * width), by.of_rank(wanted.dq, rank, width), f32 ? 1e-4 : 2e-2,
                    f32 ? 2e-5 : 3e-2);
        const numbers more_k = b.take<T>(at_dk, k.size()), more_v = b.take<T>(at_dv, v.size());
        for (std::size_t i = 0; i < dk.size(); ++i) dk[i] += more_k[i];
        for (std::size_t i = 0; i < dv.size(); ++i) dv[i] += more_v[i];
      }
      check_close("dk", dk, by.gathered(wanted.dk, k_width), f32 ? 1e-4 : 2e-2, f32 ? 4e-5 : 4e-2);
      check_close("dv", dv, by.gathered(wanted.dv, v_width), f32 ? 1e-4 : 2e-2, f32 ? 4e-5 : 4e-2);
    }
}

TEST_CASE_TEMPLATE("attention in parts around a ring and its gradients are those of whole sequences", T,
                   float, bf16) {
  constexpr bool f32 = std::is_same_v<T, float>;
  for (const shape s : shapes) {
    CAPTURE(s.seq);
    CAPTURE(s.ranks);
    const int width = s.heads * s.dim, k_width = s.kv_heads * s.dim, v_width = s.kv_heads * s.values(),
              o_width = s.heads * s.values(), count = s.seq / s.ranks;
    const std::size_t tokens = static_cast<std::size_t>(s.rows) * s.seq, own = tokens / s.ranks;
    const numbers q = random_numbers<T>(tokens * width, 1.5, 1),
                  k = random_numbers<T>(tokens * k_width, 1.5, 2),
                  v = random_numbers<T>(tokens * v_width, 1, 3),
                  dout = random_numbers<T>(tokens * o_width, 1, 4);
    const reference wanted(s, q, k, v, dout);
    const order by{s};
    std::vector<numbers> dk(s.ranks, numbers(own * k_width, 0.0)), dv(s.ranks, numbers(own * v_width, 0.0));
    for (int rank = 0; rank < s.ranks; ++rank) {
      CAPTURE(rank);
      bench b;
      const attention_shape planned{s.rows, count,      s.heads,   s.kv_heads,
                                    s.dim,  s.values(), sizeof(T), b.of().about->deterministic};
      const at at_q = b.put<T>(by.of_rank(q, rank, width)),
               at_dout = b.put<T>(by.of_rank(dout, rank, o_width)),
               scratch = b.room<float>(attention_scratch(planned) / sizeof(float) + 1),
               grad_scratch = b.room<float>(attention_grad_scratch(planned) / sizeof(float) + 1),
               starts = b.put(s.starts());
      std::vector<at> keys, values;
      for (int other = 0; other < s.ranks; ++other) {
        keys.push_back(b.put<T>(by.of_rank(k, other, k_width)));
        values.push_back(b.put<T>(by.of_rank(v, other, v_width)));
      }
      const at o = b.room<T>(own * o_width), lse = b.room<float>(own * s.heads),
               o_more = b.room<T>(own * o_width), lse_more = b.room<float>(own * s.heads),
               dq = b.room<T>(own * width), at_dk = b.room<T>(own * k_width),
               at_dv = b.room<T>(own * v_width);
      const int first = rank * static_cast<int>(own);
      const auto holder = [&](int step) {
        return static_cast<std::size_t>((rank - step + s.ranks) % s.ranks);
      };
      for (int step = 0; step < s.ranks; ++step) {
        const at to = step == 0 ? o : o_more, sums = step == 0 ? lse : lse_more;
        if (s.documents > 0)
          document_ring_attention<T>(b.on(), to, sums, scratch, at_q, keys[holder(step)],
                                     values[holder(step)], starts, s.rows, s.seq, s.heads, s.kv_heads, s.dim,
                                     s.values(), s.ranks, step, first, s.by);
        else
          ring_attention<T>(b.on(), to, sums, scratch, at_q, keys[holder(step)], values[holder(step)], s.rows,
                            s.seq, s.heads, s.kv_heads, s.dim, s.values(), s.ranks, step, first, s.by);
        if (step > 0)
          merge_attention<T>(b.on(), o, lse, o, lse, o_more, lse_more, s.rows, static_cast<int>(own), s.heads,
                             s.values());
      }
      check_close("lse", tokens_first(b.take<float>(lse, own * s.heads), s.rows, s.heads, count),
                  by.of_rank(wanted.lse, rank, s.heads), 1e-5, 2e-5);
      check_close("o", b.take<T>(o, own * o_width), by.of_rank(wanted.o, rank, o_width), f32 ? 1e-5 : 2e-2,
                  f32 ? 8e-6 : 8e-3);
      numbers sum(own * width, 0.0);
      for (int step = 0; step < s.ranks; ++step) {
        if (s.documents > 0)
          document_ring_attention_grad<T>(b.on(), dq, at_dk, at_dv, grad_scratch, at_dout, at_q,
                                          keys[holder(step)], values[holder(step)], o, lse, starts, s.rows,
                                          s.seq, s.heads, s.kv_heads, s.dim, s.values(), s.ranks, step, first,
                                          s.by);
        else
          ring_attention_grad<T>(b.on(), dq, at_dk, at_dv, grad_scratch, at_dout, at_q, keys[holder(step)],
                                 values[holder(step)], o, lse, s.rows, s.seq, s.heads, s.kv_heads, s.dim,
                                 s.values(), s.ranks, step, first, s.by);
        const numbers more = b.take<T>(dq, own * width), more_k = b.take<T>(at_dk, own * k_width),
                      more_v = b.take<T>(at_dv, own * v_width);
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
        for (std::size_t i = 0; i < more_k.size(); ++i) dk[holder(step)][i] += more_k[i];
        for (std::size_t i = 0; i < more_v.size(); ++i) dv[holder(step)][i] += more_v[i];
      }
      check_close("dq", sum, by.of_rank(wanted.dq, rank, width), f32 ? 1e-4 : 2e-2, f32 ? 2e-5 : 3e-2);
    }
    for (int rank = 0; rank < s.ranks; ++rank) {
      const auto r = static_cast<std::size_t>(rank);
      check_close("dk", dk[r], by.of_rank(wanted.dk, rank, k_width), f32 ? 1e-4 : 2e-2, f32 ? 4e-5 : 4e-2);
      check_close("dv", dv[r], by.of_rank(wanted.dv, rank, v_width), f32 ? 1e-4 : 2e-2, f32 ? 4e-5 : 4e-2);
    }
  }
}

}  // namespace
}  // namespace rankc::runtime::cuda::test::chunk_attention_test
