// SPDX-License-Identifier: Apache-2.0
// A part of ring attention: the queries of a rank's chunks of each sequence to the keys of one rank. Two
// parts are merged by their log-sum-exps.
#include "gemm.hpp"
#include "head_sizes.hpp"
#include "scores.hpp"

#include <rankc/runtime/host/kernels.hpp>
#include <rankc/contract/kernel_scratch.hpp>
#include <rankc/runtime/ring_step.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace rankc::runtime::host {
namespace {

/// A block of queries, and the keys of the rank that they see: from `first` on, up to those of the last
/// query.
struct query_block_of_step {
  int begin, count, first, keys;
  query_block_of_step(const runtime::ring_step& s, const runtime::chunks& has, const attention_setting& by,
                      int query)
      : begin(query),
        count(std::min(query_block, s.count - query)),
        first(s.of_keys.count_before(by.first_key(has.position(query)))),
        keys((s.causal ? query + count : s.keys) - first) {}
};

/// The indices of the first and the last key that a query sees, relative to the block's first key.
template <class T>
struct seen_keys {
  int first, last;
  seen_keys(const runtime::ring_step& s, const runtime::chunks& has, const score_form<T>& by,
            const documents& of, int row, int query, int first_of_block)
      : first(s.of_keys.count_before(by.first_key(of, row, has.position(query))) - first_of_block),
        last(s.last_key(query) - first_of_block) {}
};

template <class T>
void attention_within(const lane& on, at o, at lse, at scratch, at q, at k, at v, const documents& of,
                      int rows, int seq, int heads, int kv_heads, int dim, int value_dim, int ring,
                      double step, int first, const attention_setting& setting) {
  const runtime::chunks has{seq, ring, first / (rows * (seq / ring))};
  const runtime::ring_step sees =
      runtime::step_of_ring(rows, seq, ring, static_cast<int>(step), first, setting.causal);
  const head_sizes s{heads, kv_heads, dim, value_dim};
  const score_form<T> by(setting, dim);
  T* scores = on.at<T>(scratch);
  std::fill_n(on.at<T>(o), static_cast<std::size_t>(rows) * sees.count * s.o_width(), T(0));
  std::fill_n(on.at<T>(lse), static_cast<std::size_t>(rows) * sees.count * heads,
              -std::numeric_limits<T>::infinity());
  for (int row = 0; row < rows; ++row)
    for (int h = 0; h < heads; ++h) {
      const std::size_t token = static_cast<std::size_t>(row) * sees.count;
      T* sums = on.at<T>(lse) + (static_cast<std::size_t>(row) * heads + h) * sees.count;
      for (int i = sees.first_query; i < sees.count; i += query_block) {
        const query_block_of_step block(sees, has, setting, i);
        if (block.keys <= 0) continue;
        const std::size_t query = token + i, key = token + block.first;
        gemm(form::plain, form::transposed, block.count, block.keys, dim, by.scale,
             on.at<T>(q) + s.in_q(query, h), s.q_width(), on.at<T>(k) + s.in_k(key, h), s.k_width(), T(0),
             scores, block.keys);
        for (int n = 0; n < block.count; ++n) {
          T* line = scores + static_cast<std::size_t>(n) * block.keys;
          const seen_keys<T> range(sees, has, by, of, row, i + n, block.first);
          by.cap(line, range.first, range.last);
          sums[i + n] = seen_softmax(line, range.first, range.last, block.keys);
        }
        gemm(form::plain, form::plain, block.count, value_dim, block.keys, T(1), scores, block.keys,
             on.at<T>(v) + s.in_v(key, h), s.v_width(), T(0), on.at<T>(o) + s.in_o(query, h), s.o_width());
      }
    }
}

template <class T>
void attention_grad_within(const lane& on, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v, at o,
                           at lse, const documents& of, int rows, int seq, int heads, int kv_heads, int dim,
                           int value_dim, int ring, double step, int first,
                           const attention_setting& setting) {
  const runtime::chunks has{seq, ring, first / (rows * (seq / ring))};
  const runtime::ring_step sees =
      runtime::step_of_ring(rows, seq, ring, static_cast<int>(step), first, setting.causal);
  const head_sizes s{heads, kv_heads, dim, value_dim};
  const score_form<T> by(setting, dim);
  const std::size_t of_block = attention_scratch(sees.count, sees.count, 1),
                    tokens = static_cast<std::size_t>(rows) * sees.count;
  T *scores = on.at<T>(scratch), *dscores = scores + of_block, *delta = dscores + of_block;
  std::fill_n(on.at<T>(dq), tokens * s.q_width(), T(0));
  std::fill_n(on.at<T>(dk), tokens * s.k_width(), T(0));
  std::fill_n(on.at<T>(dv), tokens * s.v_width(), T(0));
  for (int row = 0; row < rows; ++row)
    for (int h = 0; h < heads; ++h) {
      const std::size_t token = static_cast<std::size_t>(row) * sees.count;
      const T* sums = on.at<T>(lse) + (static_cast<std::size_t>(row) * heads + h) * sees.count;
      output_dots(delta, on.at<T>(dout) + s.in_o(token, h), on.at<T>(o) + s.in_o(token, h), sees.count,
                  s.o_width(), value_dim);
      for (int i = sees.first_query; i < sees.count; i += query_block) {
        const query_block_of_step block(sees, has, setting, i);
        if (block.keys <= 0) continue;
        const std::size_t query = token + i, key = token + block.first, q_at = s.in_q(query, h),
                          k_at = s.in_k(key, h), v_at = s.in_v(key, h), o_at = s.in_o(query, h);
        gemm(form::plain, form::transposed, block.count, block.keys, dim, by.scale, on.at<T>(q) + q_at,
             s.q_width(), on.at<T>(k) + k_at, s.k_width(), T(0), scores, block.keys);
        gemm(form::plain, form::transposed, block.count, block.keys, value_dim, T(1), on.at<T>(dout) + o_at,
             s.o_width(), on.at<T>(v) + v_at, s.v_width(), T(0), dscores, block.keys);
        for (int n = 0; n < block.count; ++n) {
          const std::size_t line = static_cast<std::size_t>(n) * block.keys;
          const seen_keys<T> range(sees, has, by, of, row, i + n, block.first);
          by.cap(scores + line, range.first, range.last);
          seen_softmax_grad(scores + line, dscores + line, sums[i + n], delta[i + n], by, range.first,
                            range.last, block.keys);
        }
        gemm(form::transposed, form::plain, block.keys, value_dim, block.count, T(1), scores, block.keys,
             on.at<T>(dout) + o_at, s.o_width(), T(1), on.at<T>(dv) + v_at, s.v_width());
        gemm(form::transposed, form::plain, block.keys, dim, block.count, T(1), dscores, block.keys,
             on.at<T>(q) + q_at, s.q_width(), T(1), on.at<T>(dk) + k_at, s.k_width());
        gemm(form::plain, form::plain, block.count, dim, block.keys, T(1), dscores, block.keys,
             on.at<T>(k) + k_at, s.k_width(), T(0), on.at<T>(dq) + q_at, s.q_width());
      }
    }
}

}  // namespace

template <class T>
void ring_attention(const lane& on, at o, at lse, at scratch, at q, at k, at v, int rows, int seq, int heads,
                    int kv_heads, int dim, int value_dim, int ring, double step, int first,
                    const attention_setting& by) {
  attention_within<T>(on, o, lse, scratch, q, k, v, {}, rows, seq, heads, kv_heads, dim, value_dim, ring,
                      step, first, by);
}
template <class T>
void document_ring_attention(const lane& on, at o, at lse, at scratch, at q, at k, at v, at starts, int rows,
                             int seq, int heads, int kv_heads, int dim, int value_dim, int ring, double step,
                             int first, const attention_setting& by) {
  attention_within<T>(on, o, lse, scratch, q, k, v, {on.at<std::int32_t>(starts), seq}, rows, seq, heads,
                      kv_heads, dim, value_dim, ring, step, first, by);
}

template <class T>
void ring_attention_grad(const lane& on, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v, at o,
                         at lse, int rows, int seq, int heads, int kv_heads, int dim, int value_dim, int ring,
                         double step, int first, const attention_setting& by) {
  attention_grad_within<T>(on, dq, dk, dv, scratch, dout, q, k, v, o, lse, {}, rows, seq, heads, kv_heads,
                           dim, value_dim, ring, step, first, by);
}
template <class T>
void document_ring_attention_grad(const lane& on, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v,
                                  at o, at lse, at starts, int rows, int seq, int heads, int kv_heads,
                                  int dim, int value_dim, int ring, double step, int first,
                                  const attention_setting& by) {
  attention_grad_within<T>(on, dq, dk, dv, scratch, dout, q, k, v, o, lse, {on.at<std::int32_t>(starts), seq},
                           rows, seq, heads, kv_heads, dim, value_dim, ring, step, first, by);
}

// A part that sees no keys has a log-sum-exp of -infinity and weight 0.
template <class T>
void merge_attention(const lane& on, at o, at lse, at o_before, at lse_before, at o_more, at lse_more,
                     int rows, int tokens, int heads, int dim) {
  const int count = tokens / rows;
  for (int row = 0; row < rows; ++row)
    for (int h = 0; h < heads; ++h)
      for (int n = 0; n < count; ++n) {
        const std::size_t sum = (static_cast<std::size_t>(row) * heads + h) * count + n;
        const std::size_t at = ((static_cast<std::size_t>(row) * count + n) * heads + h) * dim;
        const T a = on.at<T>(lse_before)[sum], b = on.at<T>(lse_more)[sum], top = std::max(a, b);
        const T total = top + std::log(std::exp(a - top) + std::exp(b - top)), share = std::exp(b - total);
        on.at<T>(lse)[sum] = total;
        for (int d = 0; d < dim; ++d) {
          const T before = on.at<T>(o_before)[at + d];
          on.at<T>(o)[at + d] = before + share * (on.at<T>(o_more)[at + d] - before);
        }
      }
}

template decltype(ring_attention<float>) ring_attention<float>;
template decltype(ring_attention<double>) ring_attention<double>;
template decltype(ring_attention_grad<float>) ring_attention_grad<float>;
template decltype(ring_attention_grad<double>) ring_attention_grad<double>;
template decltype(merge_attention<float>) merge_attention<float>;
template decltype(merge_attention<double>) merge_attention<double>;
template decltype(document_ring_attention<float>) document_ring_attention<float>;
template decltype(document_ring_attention<double>) document_ring_attention<double>;
template decltype(document_ring_attention_grad<float>) document_ring_attention_grad<float>;
template decltype(document_ring_attention_grad<double>) document_ring_attention_grad<double>;

}  // namespace rankc::runtime::host
