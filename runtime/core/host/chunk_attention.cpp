// SPDX-License-Identifier: Apache-2.0
// Attention of the two chunks that a rank holds of each sequence, to the gathered keys of all ranks. A causal
// query sees the chunks before its own, and its own chunk up to itself. With a window it sees only the last
// of these keys. A query sees all keys if attention is not causal. Keys that no query of a block sees are not
// read.
#include "gemm.hpp"
#include "head_sizes.hpp"
#include "scores.hpp"

#include <rankc/runtime/host/kernels.hpp>
#include <rankc/contract/kernel_scratch.hpp>

#include <algorithm>
#include <cmath>

namespace rankc::runtime::host {
namespace {

/// A block of the rank's queries. `place` is the index of the first among the rank's tokens, and `position`
/// its position in the sequence. The block sees the keys from position `first` on, and none from `end` on.
struct queries {
  int place, position, count, first, end;
  int columns() const { return end - first; }
};

/// Visits the rank's queries in blocks.
void each_block(const runtime::chunks& has, const attention_setting& setting, auto visit) {
  const int length = has.length();
  for (int chunk = 0; chunk < has.count(); chunk += length)
    for (int i = 0; i < length; i += query_block) {
      const int position = has.position(chunk + i), count = std::min(query_block, length - i);
      visit(queries{chunk + i, position, count, setting.first_key(position),
                    setting.last_key(position + count - 1, has.seq) + 1});
    }
}

/// Visits the keys that a block sees, one chunk at a time. `visit` takes the position of the first key and
/// the number of keys.
void each_chunk(const runtime::chunks& has, const queries& b, auto visit) {
  for (int begin = b.first, next = begin; begin < b.end; begin = next) {
    next = std::min((begin / has.length() + 1) * has.length(), b.end);
    visit(begin, next - begin);
  }
}

template <class T>
void attention_within(const lane& on, at o, at lse, at scratch, at q, at k, at v, const documents& of,
                      int rows, int seq, int heads, int kv_heads, int dim, int value_dim, int ranks,
                      int first, const attention_setting& setting) {
  const runtime::chunks has{seq, ranks, first / (rows * (seq / ranks))};
  const head_sizes s{heads, kv_heads, dim, value_dim};
  const score_form<T> by(setting, dim);
  T* scores = on.at<T>(scratch);
  for (int row = 0; row < rows; ++row)
    for (int h = 0; h < heads; ++h) {
      const std::size_t token = static_cast<std::size_t>(row) * has.count();
      T* sums = on.at<T>(lse) + (static_cast<std::size_t>(row) * heads + h) * has.count();
      const auto key = [&](int position) {
        return static_cast<std::size_t>(has.gathered_row(position, row, rows));
      };
      each_block(has, setting, [&](const queries& b) {
        each_chunk(has, b, [&](int begin, int keys) {
          gemm(form::plain, form::transposed, b.count, keys, dim, by.scale,
               on.at<T>(q) + s.in_q(token + b.place, h), s.q_width(), on.at<T>(k) + s.in_k(key(begin), h),
               s.k_width(), T(0), scores + (begin - b.first), b.columns());
        });
        for (int n = 0; n < b.count; ++n) {
          T* line = scores + static_cast<std::size_t>(n) * b.columns();
          const int position = b.position + n, begin = by.first_key(of, row, position) - b.first,
                    last = setting.last_key(position, seq) - b.first;
          by.cap(line, begin, last);
          sums[b.place + n] = seen_softmax(line, begin, last, b.columns());
        }
        each_chunk(has, b, [&](int begin, int keys) {
          gemm(form::plain, form::plain, b.count, value_dim, keys, T(1), scores + (begin - b.first),
               b.columns(), on.at<T>(v) + s.in_v(key(begin), h), s.v_width(), T(begin == b.first ? 0 : 1),
               on.at<T>(o) + s.in_o(token + b.place, h), s.o_width());
        });
      });
    }
}

template <class T>
void attention_grad_within(const lane& on, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v, at o,
                           at lse, const documents& of, int rows, int seq, int heads, int kv_heads, int dim,
                           int value_dim, int ranks, int first, const attention_setting& setting) {
  const runtime::chunks has{seq, ranks, first / (rows * (seq / ranks))};
  const head_sizes s{heads, kv_heads, dim, value_dim};
  const score_form<T> by(setting, dim);
  T* scores = on.at<T>(scratch);
  const std::size_t of_block =
      attention_scratch(has.count(), seq, 1, static_cast<std::size_t>(setting.window));
  T *dscores = scores + of_block, *delta = dscores + of_block;
  const std::size_t all_keys = static_cast<std::size_t>(rows) * seq;
  std::fill_n(on.at<T>(dk), all_keys * s.k_width(), T(0));
  std::fill_n(on.at<T>(dv), all_keys * s.v_width(), T(0));
  for (int row = 0; row < rows; ++row)
    for (int h = 0; h < heads; ++h) {
      const std::size_t token = static_cast<std::size_t>(row) * has.count();
      const T* sums = on.at<T>(lse) + (static_cast<std::size_t>(row) * heads + h) * has.count();
      const auto key = [&](int position) {
        return static_cast<std::size_t>(has.gathered_row(position, row, rows));
      };
      output_dots(delta, on.at<T>(dout) + s.in_o(token, h), on.at<T>(o) + s.in_o(token, h), has.count(),
                  s.o_width(), value_dim);
      each_block(has, setting, [&](const queries& b) {
        each_chunk(has, b, [&](int begin, int keys) {
          gemm(form::plain, form::transposed, b.count, keys, dim, by.scale,
               on.at<T>(q) + s.in_q(token + b.place, h), s.q_width(), on.at<T>(k) + s.in_k(key(begin), h),
               s.k_width(), T(0), scores + (begin - b.first), b.columns());
          gemm(form::plain, form::transposed, b.count, keys, value_dim, T(1),
               on.at<T>(dout) + s.in_o(token + b.place, h), s.o_width(), on.at<T>(v) + s.in_v(key(begin), h),
               s.v_width(), T(0), dscores + (begin - b.first), b.columns());
        });
        for (int n = 0; n < b.count; ++n) {
          const std::size_t line = static_cast<std::size_t>(n) * b.columns();
          const int position = b.position + n, begin = by.first_key(of, row, position) - b.first,
                    last = setting.last_key(position, seq) - b.first;
          by.cap(scores + line, begin, last);
          seen_softmax_grad(scores + line, dscores + line, sums[b.place + n], delta[b.place + n], by, begin,
                            last, b.columns());
        }
        each_chunk(has, b, [&](int begin, int keys) {
          const int column = begin - b.first;
          gemm(form::transposed, form::plain, keys, value_dim, b.count, T(1), scores + column, b.columns(),
               on.at<T>(dout) + s.in_o(token + b.place, h), s.o_width(), T(1),
               on.at<T>(dv) + s.in_v(key(begin), h), s.v_width());
          gemm(form::transposed, form::plain, keys, dim, b.count, T(1), dscores + column, b.columns(),
               on.at<T>(q) + s.in_q(token + b.place, h), s.q_width(), T(1),
               on.at<T>(dk) + s.in_k(key(begin), h), s.k_width());
          gemm(form::plain, form::plain, b.count, dim, keys, T(1), dscores + column, b.columns(),
               on.at<T>(k) + s.in_k(key(begin), h), s.k_width(), T(column == 0 ? 0 : 1),
               on.at<T>(dq) + s.in_q(token + b.place, h), s.q_width());
        });
      });
    }
}

}  // namespace

template <class T>
void chunk_attention(const lane& on, at o, at lse, at scratch, at q, at k, at v, int rows, int seq, int heads,
                     int kv_heads, int dim, int value_dim, int ranks, int first,
                     const attention_setting& by) {
  attention_within<T>(on, o, lse, scratch, q, k, v, {}, rows, seq, heads, kv_heads, dim, value_dim, ranks,
                      first, by);
}
template <class T>
void document_chunk_attention(const lane& on, at o, at lse, at scratch, at q, at k, at v, at starts, int rows,
                              int seq, int heads, int kv_heads, int dim, int value_dim, int ranks, int first,
                              const attention_setting& by) {
  attention_within<T>(on, o, lse, scratch, q, k, v, {on.at<std::int32_t>(starts), seq}, rows, seq, heads,
                      kv_heads, dim, value_dim, ranks, first, by);
}

template <class T>
void chunk_attention_grad(const lane& on, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v, at o,
                          at lse, int rows, int seq, int heads, int kv_heads, int dim, int value_dim,
                          int ranks, int first, const attention_setting& by) {
  attention_grad_within<T>(on, dq, dk, dv, scratch, dout, q, k, v, o, lse, {}, rows, seq, heads, kv_heads,
                           dim, value_dim, ranks, first, by);
}
template <class T>
void document_chunk_attention_grad(const lane& on, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v,
                                   at o, at lse, at starts, int rows, int seq, int heads, int kv_heads,
                                   int dim, int value_dim, int ranks, int first,
                                   const attention_setting& by) {
  attention_grad_within<T>(on, dq, dk, dv, scratch, dout, q, k, v, o, lse, {on.at<std::int32_t>(starts), seq},
                           rows, seq, heads, kv_heads, dim, value_dim, ranks, first, by);
}

template decltype(chunk_attention<float>) chunk_attention<float>;
template decltype(chunk_attention<double>) chunk_attention<double>;
template decltype(chunk_attention_grad<float>) chunk_attention_grad<float>;
template decltype(chunk_attention_grad<double>) chunk_attention_grad<double>;
template decltype(document_chunk_attention<float>) document_chunk_attention<float>;
template decltype(document_chunk_attention<double>) document_chunk_attention<double>;
template decltype(document_chunk_attention_grad<float>) document_chunk_attention_grad<float>;
template decltype(document_chunk_attention_grad<double>) document_chunk_attention_grad<double>;

}  // namespace rankc::runtime::host
