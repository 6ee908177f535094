// SPDX-License-Identifier: Apache-2.0
// Causal attention of the two chunks that a rank has of each sequence, to the gathered keys of all: a chunk's
// queries see the chunks before it, and its own up to themselves. Chunks that none sees are not touched.
#include "gemm.hpp"
#include "scores.hpp"

#include <rankc/runtime/host/kernels.hpp>
#include <rankc/contract/kernel_scratch.hpp>

#include <algorithm>
#include <cmath>

namespace rankc::runtime::host {
namespace {

/// A block of a rank's queries: of a chunk of the sequence, from which place of the rank on, and what it sees
/// of that chunk.
struct queries {
  int chunk, place, count, keys_of_own;
};

/// Visit the rank's queries in blocks, and of each the chunks of keys that it sees: from which gathered row
/// on, how many, and at which column of the scores.
template <class Keys, class End>
void each_block(const runtime::chunks& has, Keys keys, End end) {
  const int length = has.length();
  for (int first = 0; first < has.count(); first += length)
    for (int i = 0; i < length; i += query_block) {
      const int count = std::min(query_block, length - i);
      const queries block{has.position(first) / length, first + i, count, i + count};
      for (int chunk = 0; chunk <= block.chunk; ++chunk)
        keys(block, chunk, chunk < block.chunk ? length : block.keys_of_own);
      end(block);
    }
}

template <class T>
void attention_within(const lane& on, at o, at lse, at scratch, at q, at k, at v, const documents& of,
                      int rows, int seq, int heads, int kv_heads, int dim, int ranks, int first) {
  const runtime::chunks has{seq, ranks, first / (rows * (seq / ranks))};
  const int q_width = heads * dim, kv_width = kv_heads * dim, length = has.length();
  const T scale = static_cast<T>(1 / std::sqrt(static_cast<double>(dim)));
  T* scores = on.at<T>(scratch);
  for (int row = 0; row < rows; ++row)
    for (int h = 0; h < heads; ++h) {
      const std::size_t head =
          static_cast<std::size_t>(row) * has.count() * q_width + static_cast<std::size_t>(h) * dim;
      const std::size_t kv_head = static_cast<std::size_t>(h / (heads / kv_heads)) * dim;
      T* sums = on.at<T>(lse) + (static_cast<std::size_t>(row) * heads + h) * has.count();
      const auto here = [&](const queries& b) { return head + static_cast<std::size_t>(b.place) * q_width; };
      const auto key = [&](int chunk) {
        return static_cast<std::size_t>(has.gathered_row(chunk * length, row, rows)) * kv_width + kv_head;
      };
      const auto columns = [&](const queries& b) { return b.chunk * length + b.keys_of_own; };
      each_block(
          has,
          [&](const queries& b, int chunk, int keys) {
            gemm(form::plain, form::transposed, b.count, keys, dim, scale, on.at<T>(q) + here(b), q_width,
                 on.at<T>(k) + key(chunk), kv_width, T(0), scores + chunk * length, columns(b));
          },
          [&](const queries& b) {
            for (int n = 0; n < b.count; ++n) {
              const int position = columns(b) - b.count + n;
              sums[b.place + n] = seen_softmax(scores + static_cast<std::size_t>(n) * columns(b),
                                               of.start(row, position), position, columns(b));
            }
            for (int chunk = 0; chunk <= b.chunk; ++chunk)
              gemm(form::plain, form::plain, b.count, dim, chunk < b.chunk ? length : b.keys_of_own, T(1),
                   scores + chunk * length, columns(b), on.at<T>(v) + key(chunk), kv_width,
                   T(chunk == 0 ? 0 : 1), on.at<T>(o) + here(b), q_width);
          });
    }
}

template <class T>
void attention_grad_within(const lane& on, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v, at o,
                           at lse, const documents& of, int rows, int seq, int heads, int kv_heads, int dim,
                           int ranks, int first) {
  const runtime::chunks has{seq, ranks, first / (rows * (seq / ranks))};
  const int q_width = heads * dim, kv_width = kv_heads * dim, length = has.length();
  const T scale = static_cast<T>(1 / std::sqrt(static_cast<double>(dim)));
  T* scores = on.at<T>(scratch);
  const std::size_t of_block = attention_scratch(has.count(), seq, 1);
  T *dscores = scores + of_block, *delta = dscores + of_block;
  const std::size_t keys_of_all = static_cast<std::size_t>(rows) * seq * kv_width;
  std::fill_n(on.at<T>(dk), keys_of_all, T(0));
  std::fill_n(on.at<T>(dv), keys_of_all, T(0));
  for (int row = 0; row < rows; ++row)
    for (int h = 0; h < heads; ++h) {
      const std::size_t head =
          static_cast<std::size_t>(row) * has.count() * q_width + static_cast<std::size_t>(h) * dim;
      const std::size_t kv_head = static_cast<std::size_t>(h / (heads / kv_heads)) * dim;
      const T* sums = on.at<T>(lse) + (static_cast<std::size_t>(row) * heads + h) * has.count();
      const auto here = [&](const queries& b) { return head + static_cast<std::size_t>(b.place) * q_width; };
      const auto key = [&](int chunk) {
        return static_cast<std::size_t>(has.gathered_row(chunk * length, row, rows)) * kv_width + kv_head;
      };
      const auto columns = [&](const queries& b) { return b.chunk * length + b.keys_of_own; };
      output_dots(delta, on.at<T>(dout) + head, on.at<T>(o) + head, has.count(), q_width, dim);
      each_block(
          has,
          [&](const queries& b, int chunk, int keys) {
            gemm(form::plain, form::transposed, b.count, keys, dim, scale, on.at<T>(q) + here(b), q_width,
                 on.at<T>(k) + key(chunk), kv_width, T(0), scores + chunk * length, columns(b));
            gemm(form::plain, form::transposed, b.count, keys, dim, T(1), on.at<T>(dout) + here(b), q_width,
                 on.at<T>(v) + key(chunk), kv_width, T(0), dscores + chunk * length, columns(b));
          },
          [&](const queries& b) {
            for (int n = 0; n < b.count; ++n) {
              const std::size_t line = static_cast<std::size_t>(n) * columns(b);
              const int position = columns(b) - b.count + n;
              seen_softmax_grad(scores + line, dscores + line, sums[b.place + n], delta[b.place + n], scale,
                                of.start(row, position), position, columns(b));
            }
            for (int chunk = 0; chunk <= b.chunk; ++chunk) {
              const int keys = chunk < b.chunk ? length : b.keys_of_own;
              gemm(form::transposed, form::plain, keys, dim, b.count, T(1), scores + chunk * length,
                   columns(b), on.at<T>(dout) + here(b), q_width, T(1), on.at<T>(dv) + key(chunk), kv_width);
              gemm(form::transposed, form::plain, keys, dim, b.count, T(1), dscores + chunk * length,
                   columns(b), on.at<T>(q) + here(b), q_width, T(1), on.at<T>(dk) + key(chunk), kv_width);
              gemm(form::plain, form::plain, b.count, dim, keys, T(1), dscores + chunk * length, columns(b),
                   on.at<T>(k) + key(chunk), kv_width, T(chunk == 0 ? 0 : 1), on.at<T>(dq) + here(b),
                   q_width);
            }
          });
    }
}

}  // namespace

template <class T>
void chunk_attention(const lane& on, at o, at lse, at scratch, at q, at k, at v, int rows, int seq, int heads,
                     int kv_heads, int dim, int ranks, int first) {
  attention_within<T>(on, o, lse, scratch, q, k, v, {}, rows, seq, heads, kv_heads, dim, ranks, first);
}
template <class T>
void document_chunk_attention(const lane& on, at o, at lse, at scratch, at q, at k, at v, at starts, int rows,
                              int seq, int heads, int kv_heads, int dim, int ranks, int first) {
  attention_within<T>(on, o, lse, scratch, q, k, v, {on.at<std::int32_t>(starts), seq}, rows, seq, heads,
                      kv_heads, dim, ranks, first);
}

template <class T>
void chunk_attention_grad(const lane& on, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v, at o,
                          at lse, int rows, int seq, int heads, int kv_heads, int dim, int ranks, int first) {
  attention_grad_within<T>(on, dq, dk, dv, scratch, dout, q, k, v, o, lse, {}, rows, seq, heads, kv_heads,
                           dim, ranks, first);
}
template <class T>
void document_chunk_attention_grad(const lane& on, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v,
                                   at o, at lse, at starts, int rows, int seq, int heads, int kv_heads,
                                   int dim, int ranks, int first) {
  attention_grad_within<T>(on, dq, dk, dv, scratch, dout, q, k, v, o, lse, {on.at<std::int32_t>(starts), seq},
                           rows, seq, heads, kv_heads, dim, ranks, first);
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
