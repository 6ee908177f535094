// SPDX-License-Identifier: Apache-2.0
// Token and learned-position tables, and rotary positions.
#include "column_sums.hpp"

#include <rankc/runtime/host/kernels.hpp>

#include <algorithm>

namespace rankc::runtime::host {
namespace {

/// The position in its document of token n of a rank's chunks.
struct position_in_chunks {
  const std::int32_t* starts;  // (rows, seq)
  runtime::chunks has;
  int rows, first;
  int operator()(std::size_t n) const {
    const int place = static_cast<int>((first + n) % (static_cast<std::size_t>(rows) * has.count()));
    const int position = has.position(place % has.count());
    return position - starts[static_cast<std::size_t>(place / has.count()) * has.seq + position];
  }
};

/// y[n] = x[n] + table[row(n)]
template <class T, class Row>
void add_rows(const lane& on, at y, at x, at table, int tokens, int width, Row row_of) {
  for (std::size_t n = 0; n < static_cast<std::size_t>(tokens); ++n) {
    T* to = on.at<T>(y) + n * width;
    const T* from = on.at<T>(x) + n * width;
    const T* row = on.at<T>(table) + static_cast<std::size_t>(row_of(n)) * width;
#pragma omp simd
    for (int c = 0; c < width; ++c) to[c] = from[c] + row[c];
  }
}
/// dtable[row(n)] += dy[n]
template <class T, class Row>
void sum_rows(const lane& on, at dtable, at dy, int tokens, int width, int seq, bool accumulate, Row row_of) {
  if (!accumulate) std::fill_n(on.at<T>(dtable), static_cast<std::size_t>(seq) * width, T(0));
  for (std::size_t n = 0; n < static_cast<std::size_t>(tokens); ++n) {
    T* to = on.at<T>(dtable) + static_cast<std::size_t>(row_of(n)) * width;
    const T* grad = on.at<T>(dy) + n * width;
#pragma omp simd
    for (int c = 0; c < width; ++c) to[c] += grad[c];
  }
}

}  // namespace

template <class T>
void embedding(const lane& on, at y, at ids, at table, int tokens, int rows, int width, int first) {
  const std::int32_t* id = on.at<std::int32_t>(ids);
  for (std::size_t n = 0; n < static_cast<std::size_t>(tokens); ++n) {
    T* to = on.at<T>(y) + n * width;
    const std::int64_t row = static_cast<std::int64_t>(id[n]) - first;
    if (row >= 0 && row < rows) std::copy_n(on.at<T>(table) + row * width, width, to);
    else std::fill_n(to, width, T(0));
  }
}

template <class T>
void embedding_grad(const lane& on, at dtable, at dy, at ids, int tokens, int rows, int width, int first,
                    bool accumulate) {
  const std::int32_t* id = on.at<std::int32_t>(ids);
  if (!accumulate) std::fill_n(on.at<T>(dtable), static_cast<std::size_t>(rows) * width, T(0));
  for (std::size_t n = 0; n < static_cast<std::size_t>(tokens); ++n) {
    const std::int64_t row = static_cast<std::int64_t>(id[n]) - first;
    if (row < 0 || row >= rows) continue;
    T* to = on.at<T>(dtable) + row * width;
    const T* grad = on.at<T>(dy) + n * width;
#pragma omp simd
    for (int c = 0; c < width; ++c) to[c] += grad[c];
  }
}

template <class T>
void position(const lane& on, at y, at x, at table, int tokens, int width, int seq, int first) {
  add_rows<T>(on, y, x, table, tokens, width, [=](std::size_t n) { return (first + n) % seq; });
}

// Position p adds up the tokens n with (first + n) % seq = p. A position without tokens becomes 0 or keeps
// its sum.
template <class T>
void position_grad(const lane& on, at dtable, at dy, int tokens, int width, int seq, int first,
                   bool accumulate) {
  const T* grad = on.at<T>(dy);
  for (int p = 0; p < seq; ++p) {
    const int first_token = (p - first % seq + seq) % seq;
    column_sums(on.at<T>(dtable) + static_cast<std::size_t>(p) * width, first_token, tokens, seq, width,
                accumulate, [=](std::size_t n, int c) { return grad[n * width + c]; });
  }
}

// Token n of a rank's chunks has index (first + n) % count in the rank's part of its sequence, and that
// index's position.
template <class T>
void chunk_position(const lane& on, at y, at x, at table, int tokens, int width, int rows, int seq, int ranks,
                    int first) {
  const runtime::chunks has{seq, ranks, first / (rows * (seq / ranks))};
  add_rows<T>(on, y, x, table, tokens, width,
              [=](std::size_t n) { return has.position(static_cast<int>((first + n) % has.count())); });
}

template <class T>
void chunk_position_grad(const lane& on, at dtable, at dy, int tokens, int width, int rows, int seq,
                         int ranks, int first, bool accumulate) {
  const runtime::chunks has{seq, ranks, first / (rows * (seq / ranks))};
  const T* grad = on.at<T>(dy);
  for (int p = 0; p < seq; ++p) {
    const int place = has.place(p), count = has.count();
    const int first_token = place < 0 ? tokens : (place - first % count + count) % count;
    column_sums(on.at<T>(dtable) + static_cast<std::size_t>(p) * width, first_token, tokens, count, width,
                accumulate, [=](std::size_t n, int c) { return grad[n * width + c]; });
  }
}

template <class T>
void document_position(const lane& on, at y, at x, at table, at starts, int tokens, int width, int seq,
                       int first) {
  const std::int32_t* start = on.at<std::int32_t>(starts) + first;
  add_rows<T>(on, y, x, table, tokens, width, [=](std::size_t n) { return (first + n) % seq - start[n]; });
}

template <class T>
void document_position_grad(const lane& on, at dtable, at dy, at starts, int tokens, int width, int seq,
                            int first, bool accumulate) {
  const std::int32_t* start = on.at<std::int32_t>(starts) + first;
  sum_rows<T>(on, dtable, dy, tokens, width, seq, accumulate,
              [=](std::size_t n) { return (first + n) % seq - start[n]; });
}

template <class T>
void document_chunk_position(const lane& on, at y, at x, at table, at starts, int tokens, int width, int rows,
                             int seq, int ranks, int first) {
  const position_in_chunks row_of{
      on.at<std::int32_t>(starts), {seq, ranks, first / (rows * (seq / ranks))}, rows, first};
  add_rows<T>(on, y, x, table, tokens, width, row_of);
}

template <class T>
void document_chunk_position_grad(const lane& on, at dtable, at dy, at starts, int tokens, int width,
                                  int rows, int seq, int ranks, int first, bool accumulate) {
  const position_in_chunks row_of{
      on.at<std::int32_t>(starts), {seq, ranks, first / (rows * (seq / ranks))}, rows, first};
  sum_rows<T>(on, dtable, dy, tokens, width, seq, accumulate, row_of);
}

// Rotates each pair (x[j], x[j + dim / 2]) by the angle of its position, forwards or (direction -1) back.
template <class T>
void rotate(const lane& on, at y, at x, at table, int tokens, int heads, int dim, int seq, T direction) {
  const int half = dim / 2;
  for (std::size_t n = 0; n < static_cast<std::size_t>(tokens); ++n) {
    const T* cosines = on.at<T>(table) + n % seq * half;
    const T* sines = cosines + static_cast<std::size_t>(seq) * half;
    for (int h = 0; h < heads; ++h) {
      const T* from = on.at<T>(x) + (n * heads + h) * dim;
      T* to = on.at<T>(y) + (n * heads + h) * dim;
#pragma omp simd
      for (int j = 0; j < half; ++j) {
        const T a = from[j], b = from[j + half], cosine = cosines[j], sine = direction * sines[j];
        to[j] = a * cosine - b * sine;
        to[j + half] = b * cosine + a * sine;
      }
    }
  }
}

template <class T>
void rope(const lane& on, at y, at x, at table, int tokens, int heads, int dim, int seq) {
  rotate<T>(on, y, x, table, tokens, heads, dim, seq, T(1));
}

template <class T>
void rope_grad(const lane& on, at dx, at dy, at table, int tokens, int heads, int dim, int seq) {
  rotate<T>(on, dx, dy, table, tokens, heads, dim, seq, T(-1));
}

template decltype(embedding<float>) embedding<float>;
template decltype(embedding<double>) embedding<double>;
template decltype(embedding_grad<float>) embedding_grad<float>;
template decltype(embedding_grad<double>) embedding_grad<double>;
template decltype(position<float>) position<float>;
template decltype(position<double>) position<double>;
template decltype(position_grad<float>) position_grad<float>;
template decltype(position_grad<double>) position_grad<double>;
template decltype(chunk_position<float>) chunk_position<float>;
template decltype(chunk_position<double>) chunk_position<double>;
template decltype(chunk_position_grad<float>) chunk_position_grad<float>;
template decltype(chunk_position_grad<double>) chunk_position_grad<double>;
template decltype(document_position<float>) document_position<float>;
template decltype(document_position<double>) document_position<double>;
template decltype(document_position_grad<float>) document_position_grad<float>;
template decltype(document_position_grad<double>) document_position_grad<double>;
template decltype(document_chunk_position<float>) document_chunk_position<float>;
template decltype(document_chunk_position<double>) document_chunk_position<double>;
template decltype(document_chunk_position_grad<float>) document_chunk_position_grad<float>;
template decltype(document_chunk_position_grad<double>) document_chunk_position_grad<double>;
template decltype(rope<float>) rope<float>;
template decltype(rope<double>) rope<double>;
template decltype(rope_grad<float>) rope_grad<float>;
template decltype(rope_grad<double>) rope_grad<double>;

}  // namespace rankc::runtime::host
