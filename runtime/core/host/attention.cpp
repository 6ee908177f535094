// SPDX-License-Identifier: Apache-2.0
// Attention per sequence and head, as GEMMs over blocks of queries. Only one block's scores are stored at a
// time. The block [i, i + block) sees the keys [first, i + block), where `first` is the first key in the
// window of query i, or all keys if attention is not causal. Other scores are not computed. Backward
// recomputes the probabilities from the saved log-sum-exp.
#include "gemm.hpp"
#include "head_sizes.hpp"
#include "scores.hpp"

#include <rankc/runtime/host/kernels.hpp>
#include <rankc/contract/kernel_scratch.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace rankc::runtime::host {
namespace {

template <class T>
void attention_within(const lane& on, at o, at lse, at scratch, at q, at k, at v, const documents& of,
                      int rows, int seq, int heads, int kv_heads, int dim, int value_dim,
                      const attention_setting& setting) {
  const head_sizes s{heads, kv_heads, dim, value_dim};
  const score_form<T> by(setting, dim);
  T* scores = on.at<T>(scratch);
  for (int row = 0; row < rows; ++row) {
    const std::size_t token = static_cast<std::size_t>(row) * seq;
    for (int h = 0; h < heads; ++h) {
      T* sums = on.at<T>(lse) + (static_cast<std::size_t>(row) * heads + h) * seq;
      for (int i = 0; i < seq; i += query_block) {
        const int queries = std::min(query_block, seq - i), first = setting.first_key(i),
                  keys = setting.last_key(i + queries - 1, seq) + 1 - first;
        const std::size_t query = token + i, key = token + first;
        gemm(form::plain, form::transposed, queries, keys, dim, by.scale, on.at<T>(q) + s.in_q(query, h),
             s.q_width(), on.at<T>(k) + s.in_k(key, h), s.k_width(), T(0), scores, keys);
        for (int n = 0; n < queries; ++n) {
          T* line = scores + static_cast<std::size_t>(n) * keys;
          const int begin = by.first_key(of, row, i + n) - first, last = setting.last_key(i + n, seq) - first;
          by.cap(line, begin, last);
          sums[i + n] = seen_softmax(line, begin, last, keys);
        }
        gemm(form::plain, form::plain, queries, value_dim, keys, T(1), scores, keys,
             on.at<T>(v) + s.in_v(key, h), s.v_width(), T(0), on.at<T>(o) + s.in_o(query, h), s.o_width());
      }
    }
  }
}

// Blocks run from the last to the first. Without a window the last block sees every key. So the last block of
// the group's first head overwrites all of dk and dv, and the other blocks and heads add. With a window dk
// and dv are cleared first.
template <class T>
void attention_grad_within(const lane& on, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v, at o,
                           at lse, const documents& of, int rows, int seq, int heads, int kv_heads, int dim,
                           int value_dim, const attention_setting& setting) {
  const head_sizes s{heads, kv_heads, dim, value_dim};
  const int group = heads / kv_heads;
  const score_form<T> by(setting, dim);
  T* scores = on.at<T>(scratch);
  const std::size_t of_block = attention_scratch(seq, seq, 1, static_cast<std::size_t>(setting.window));
  T *dscores = scores + of_block, *delta = dscores + of_block;
  const int last_block = (seq - 1) / query_block * query_block;
  if (setting.window > 0)
    for (const auto& [gradient, width] : {std::pair(dk, s.k_width()), std::pair(dv, s.v_width())})
      std::fill_n(on.at<T>(gradient), static_cast<std::size_t>(rows) * seq * width, T(0));
  for (int row = 0; row < rows; ++row) {
    const std::size_t token = static_cast<std::size_t>(row) * seq;
    for (int h = 0; h < heads; ++h) {
      const T* sums = on.at<T>(lse) + (static_cast<std::size_t>(row) * heads + h) * seq;
      output_dots(delta, on.at<T>(dout) + s.in_o(token, h), on.at<T>(o) + s.in_o(token, h), seq, s.o_width(),
                  value_dim);
      for (int i = last_block; i >= 0; i -= query_block) {
        const int queries = std::min(query_block, seq - i), first = setting.first_key(i),
                  keys = setting.last_key(i + queries - 1, seq) + 1 - first;
        const std::size_t query = token + i, key = token + first, q_at = s.in_q(query, h),
                          k_at = s.in_k(key, h), v_at = s.in_v(key, h), o_at = s.in_o(query, h);
        gemm(form::plain, form::transposed, queries, keys, dim, by.scale, on.at<T>(q) + q_at, s.q_width(),
             on.at<T>(k) + k_at, s.k_width(), T(0), scores, keys);
        gemm(form::plain, form::transposed, queries, keys, value_dim, T(1), on.at<T>(dout) + o_at,
             s.o_width(), on.at<T>(v) + v_at, s.v_width(), T(0), dscores, keys);
        for (int n = 0; n < queries; ++n) {
          const std::size_t line = static_cast<std::size_t>(n) * keys;
          const int begin = by.first_key(of, row, i + n) - first, last = setting.last_key(i + n, seq) - first;
          by.cap(scores + line, begin, last);
          seen_softmax_grad(scores + line, dscores + line, sums[i + n], delta[i + n], by, begin, last, keys);
        }
        const bool overwrites = setting.window == 0 && h % group == 0 && i == last_block;
        const T keep = static_cast<T>(overwrites ? 0 : 1);
        gemm(form::transposed, form::plain, keys, value_dim, queries, T(1), scores, keys,
             on.at<T>(dout) + o_at, s.o_width(), keep, on.at<T>(dv) + v_at, s.v_width());
        gemm(form::transposed, form::plain, keys, dim, queries, T(1), dscores, keys, on.at<T>(q) + q_at,
             s.q_width(), keep, on.at<T>(dk) + k_at, s.k_width());
        gemm(form::plain, form::plain, queries, dim, keys, T(1), dscores, keys, on.at<T>(k) + k_at,
             s.k_width(), T(0), on.at<T>(dq) + q_at, s.q_width());
      }
    }
  }
}

}  // namespace

template <class T>
void attention(const lane& on, at o, at lse, at scratch, at q, at k, at v, int rows, int seq, int heads,
               int kv_heads, int dim, int value_dim, const attention_setting& by) {
  attention_within<T>(on, o, lse, scratch, q, k, v, {}, rows, seq, heads, kv_heads, dim, value_dim, by);
}
template <class T>
void document_attention(const lane& on, at o, at lse, at scratch, at q, at k, at v, at starts, int rows,
                        int seq, int heads, int kv_heads, int dim, int value_dim,
                        const attention_setting& by) {
  attention_within<T>(on, o, lse, scratch, q, k, v, {on.at<std::int32_t>(starts), seq}, rows, seq, heads,
                      kv_heads, dim, value_dim, by);
}

template <class T>
void attention_grad(const lane& on, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v, at o, at lse,
                    int rows, int seq, int heads, int kv_heads, int dim, int value_dim,
                    const attention_setting& by) {
  attention_grad_within<T>(on, dq, dk, dv, scratch, dout, q, k, v, o, lse, {}, rows, seq, heads, kv_heads,
                           dim, value_dim, by);
}
template <class T>
void document_attention_grad(const lane& on, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v, at o,
                             at lse, at starts, int rows, int seq, int heads, int kv_heads, int dim,
                             int value_dim, const attention_setting& by) {
  attention_grad_within<T>(on, dq, dk, dv, scratch, dout, q, k, v, o, lse, {on.at<std::int32_t>(starts), seq},
                           rows, seq, heads, kv_heads, dim, value_dim, by);
}

template decltype(attention<float>) attention<float>;
template decltype(attention<double>) attention<double>;
template decltype(attention_grad<float>) attention_grad<float>;
template decltype(attention_grad<double>) attention_grad<double>;
template decltype(document_attention<float>) document_attention<float>;
template decltype(document_attention<double>) document_attention<double>;
template decltype(document_attention_grad<float>) document_attention_grad<float>;
template decltype(document_attention_grad<double>) document_attention_grad<double>;

}  // namespace rankc::runtime::host
